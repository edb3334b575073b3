"""Tests of rows events and values that cannot be read: the effect of each failure mode, and the messages."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from incsnap.binlog.protocol import wire_types as t
from incsnap.binlog.protocol.row_images import PARTIAL_UPDATE, RowImages, decode_rows
from incsnap.binlog.protocol.table_map import parse_table_map
from incsnap.binlog.protocol.unreadable import STRICT
from incsnap.config.settings import FailureHandling
from incsnap.errors import BinlogError
from tests.support.packets import row_image, rows_event, table_map

# id int NOT NULL, v varchar(5), j json, w varchar(5) NOT NULL
TABLE = parse_table_map(
    table_map(
        ["id", "v", "j", "w"], [t.LONG, t.VARCHAR, t.JSON, t.VARCHAR], b"\x14\x00\x04\x14\x00",
        [(3, b"\xfc\xff\x00" * 2)], nullable=0b0110,
    ),
    {255: "utf8mb4"},
)  # fmt: skip
NUMBER = b"\x05\x07\x00"
SKIP = FailureHandling(processing="skip", converting="skip", inconsistent_schema="skip")
WARN = FailureHandling(processing="warn", converting="warn", inconsistent_schema="warn")


def image(number: int, v: bytes | None = b"v", j: bytes | None = NUMBER, w: bytes = b"w") -> bytes:
    return row_image(
        [
            number.to_bytes(4, "little"),
            None if v is None else bytes([len(v)]) + v,
            None if j is None else len(j).to_bytes(4, "little") + j,
            bytes([len(w)]) + w,
        ]
    )


def good(number: int) -> tuple[int, bytes]:
    return 30, rows_event(4, [image(number)])


def decode(events: list[tuple[int, bytes]], handling: FailureHandling = STRICT) -> RowImages:
    sizes = np.array([len(body) for _, body in events], np.int64)
    ends = np.cumsum(sizes)
    return decode_rows(
        b"".join(body for _, body in events), ends - sizes, ends, np.array([kind for kind, _ in events], np.uint8),
        TABLE, handling=handling, where=lambda event: f"binlog.000042:{1000 + event}",
    )  # fmt: skip


DAMAGED = {
    "cut": (30, rows_event(4, [image(9)])[:-1]),
    "cut in its header": (30, rows_event(4, [image(9)])[:9]),
    "longer": (30, rows_event(4, [image(9), b"\x00"])),
    "odd": (31, rows_event(4, [image(9)], update=True)),
    "unknown": (19, rows_event(4, [image(9)])),
    "not full": (30, rows_event(4, [image(9)]).replace(b"\x04\x0f", b"\x04\x0e")),
    "partial": (PARTIAL_UPDATE, rows_event(4, [image(9), b"\x02" + image(9)], update=True)),
}
MISFIT = (30, rows_event(3, [row_image([bytes(4), b"\x01v", b"\x01w"])]))


@pytest.mark.parametrize("copies", [1, 40])
@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_event_is_left_out_and_the_others_stay(name: str, copies: int) -> None:
    events = [good(1), DAMAGED[name], good(2), *[good(3)] * copies]
    images = decode(events, SKIP)
    assert images.dropped.tolist() == [1]
    assert images.columns[0].to_pylist() == [1, 2, *[3] * copies]
    assert images.event.tolist() == [0, *range(2, len(events))]


def test_many_bad_events_of_all_kinds_leave_the_good_ones() -> None:
    bad = [*DAMAGED.values(), MISFIT]
    events = [good(0)]
    for number in range(1, 30):
        events += [*bad[: number % 9], good(number)]
    images = decode(events, SKIP)
    assert images.columns[0].to_pylist() == list(range(30))
    assert [events[place] for place in images.event.tolist()] == [good(number) for number in range(30)]
    assert images.dropped.tolist() == [place for place, event in enumerate(events) if event in bad]


@pytest.mark.parametrize("name", DAMAGED)
def test_the_error_of_a_damaged_event_names_file_position_and_table(name: str) -> None:
    with pytest.raises(BinlogError, match=r"binlog\.000042:1001: shop\.orders: "):
        decode([good(1), DAMAGED[name]], FailureHandling(processing="fail", inconsistent_schema="skip"))


def test_the_modes_of_damage_and_of_misfit_are_told_apart() -> None:
    fails = FailureHandling(processing="skip", inconsistent_schema="fail")
    with pytest.raises(BinlogError, match=r"binlog\.000042:1000: shop\.orders: .* 4 columns of its table map"):
        decode([MISFIT, good(1)], fails)
    assert decode([DAMAGED["cut"], good(1)], fails).dropped.tolist() == [0]


def test_warn_says_where_and_skip_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "incsnap")
    decode([good(1), DAMAGED["cut"], MISFIT], SKIP)
    assert not caplog.messages
    decode([good(1), DAMAGED["cut"], MISFIT], WARN)
    assert [message.split(": ")[0] for message in caplog.messages] == ["binlog.000042:1002", "binlog.000042:1001"]
    assert all("shop.orders" in message for message in caplog.messages)


def test_a_thousand_bad_events_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "incsnap")
    assert len(decode([DAMAGED["cut"]] * 1000, WARN).dropped) == 1000
    assert len(caplog.messages) == 11
    assert "990 further" in caplog.messages[-1]


def test_a_bad_value_is_null_and_its_row_stays(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "incsnap")
    events = [good(1), (30, rows_event(4, [image(2), image(3, v=b"\xff\xfe"), image(4, v=None), image(5, j=b"\x0d")]))]
    images = decode(events, WARN)
    assert images.columns[0].to_pylist() == [1, 2, 3, 4, 5]
    assert images.columns[1].to_pylist() == ["v", "v", None, None, "v"]
    assert images.columns[2].to_pylist() == ["7", "7", "7", "7", None]
    assert not len(images.dropped)
    assert len(caplog.messages) == 2
    assert "binlog.000042:1001: shop.orders: column v (varchar)" in caplog.messages[0]
    assert "column j (json)" in caplog.messages[1]


def test_a_bad_value_fails_where_that_is_asked_for() -> None:
    fails = FailureHandling(processing="skip", converting="fail", inconsistent_schema="skip")
    with pytest.raises(BinlogError, match=r"binlog\.000042:1001: shop\.orders: column v \(varchar\)"):
        decode([good(1), (30, rows_event(4, [image(2, v=b"\xff")]))], fails)


def test_a_bad_value_of_a_column_that_is_not_null_always_fails() -> None:
    with pytest.raises(BinlogError, match=r"binlog\.000042:1001: shop\.orders: column w .*NOT NULL") as failure:
        decode([good(1), (30, rows_event(4, [image(2, w=b"\xff")]))], SKIP)
    assert "column.exclude.list" in failure.value.hint


def test_every_value_may_be_bad() -> None:
    images = decode([(30, rows_event(4, [image(n, v=b"\xff") for n in range(300)]))], SKIP)
    assert images.columns[1].to_pylist() == [None] * 300
    assert images.columns[0].to_pylist() == list(range(300))


def test_a_difference_that_does_not_fit_its_document_is_a_bad_value() -> None:
    differences = b"\x00\x03$.a\x03" + NUMBER
    after = b"\x01\x01" + image(2, j=None)[:1].replace(b"\xf4", b"\xf0")
    after += (2).to_bytes(4, "little") + b"\x01v" + len(differences).to_bytes(4, "little") + differences + b"\x01w"
    event = (PARTIAL_UPDATE, rows_event(4, [image(2), after], update=True))
    images = decode([good(1), event], SKIP)
    assert images.columns[0].to_pylist() == [1, 2, 2]
    assert images.columns[2].to_pylist() == ["7", "7", None]
    with pytest.raises(BinlogError, match="column j"):
        decode([good(1), event])
