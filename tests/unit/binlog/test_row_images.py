"""Tests of the decoder of rows events, with events made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from incsnap.binlog.protocol import wire_types as t
from incsnap.binlog.protocol.row_images import PARTIAL_UPDATE, RowImages, decode_rows
from incsnap.binlog.protocol.table_map import parse_table_map
from incsnap.columns.packets import Packets
from incsnap.errors import BinlogError, UnsupportedType
from tests.support.packets import row_image, rows_event, table_map

CHARSETS = {255: "utf8mb4"}
# id int, nine varchar(5) and tinyints, so that the null bitmap has two bytes
_NAMES = ["id", "v", "b", "c", "d", "e", "f", "g", "h", "w"]
_CODES = [t.LONG, t.VARCHAR, *[t.TINY] * 7, t.VARCHAR]
TABLE = parse_table_map(
    table_map(_NAMES, _CODES, b"\x14\x00\x2c\x01", [(3, b"\xfc\xff\x00" * 2)], nullable=0x3FE), CHARSETS
)


def image(number: int, text: str | None, tiny: int | None = 5, wide: str | None = "w") -> bytes:
    return row_image(
        [
            number.to_bytes(4, "little"),
            None if text is None else bytes([len(text)]) + text.encode(),
            *[None if tiny is None else bytes([tiny])] * 7,
            None if wide is None else len(wide).to_bytes(2, "little") + wide.encode(),
        ]
    )


def decode(events: list[tuple[int, bytes]]) -> RowImages:
    payload, starts, ends = bytearray(), [], []
    for _, body in events:
        payload += b"\xee" * 19
        starts.append(len(payload))
        payload += body
        ends.append(len(payload))
    kinds = np.array([kind for kind, _ in events], np.uint8)
    return decode_rows(bytes(payload), np.array(starts, np.int64), np.array(ends, np.int64), kinds, TABLE)


@pytest.mark.parametrize("copies", [1, 40])
def test_images_of_events_of_different_length_come_in_order(copies: int) -> None:
    # 40 copies are enough events for the walk in lock-step. The events of one copy are walked alone.
    events: list[tuple[int, bytes]] = []
    expected = []
    for copy in range(copies):
        for size in (3, 1, 0, 12):
            rows = [(copy * 100 + i, None if i % 3 == 0 else "x" * i, None if i % 4 == 1 else i) for i in range(size)]
            expected += [(len(events), *row) for row in rows]
            events.append((30, rows_event(10, [image(*row, wide="z" * 300) for row in rows])))
    images = decode(events)
    columns = [images.event.tolist(), *(images.columns[i].to_pylist() for i in (0, 1, 8))]
    assert list(zip(*columns, strict=True)) == expected
    assert set(images.columns[9].to_pylist()) == {"z" * 300}


def test_an_update_gives_before_and_after_by_turns() -> None:
    images = decode([(31, rows_event(10, [image(1, "a"), image(1, None), image(2, "b"), image(3, "b")], update=True))])
    assert images.columns[0].to_pylist() == [1, 1, 2, 3]
    assert images.columns[1].to_pylist() == ["a", None, "b", "b"]


def test_events_of_version_1_have_no_extra_data() -> None:
    images = decode([(23, rows_event(10, [image(1, "a")], version=1)), (32, rows_event(10, [image(2, "b")]))])
    assert images.columns[0].to_pylist() == [1, 2]


def test_no_events_give_empty_columns() -> None:
    images = decode([])
    assert [len(column) for column in images.columns] == [0] * 10


def test_packets_of_a_payload_may_be_given_instead() -> None:
    body = rows_event(10, [image(1, "a")])
    bounds = np.array([0]), np.array([len(body)])
    assert decode_rows(Packets.of(body), *bounds, np.array([30], np.uint8), TABLE).columns[0].to_pylist() == [1]


@pytest.mark.parametrize("copies", [1, 40])
def test_an_event_that_is_cut_is_refused_by_table(copies: int) -> None:
    body = rows_event(10, [image(1, "abc"), image(2, "abc")])
    middle = len(body) - len(image(2, "abc"))
    for size in range(len(body)):
        if size not in (middle, middle - len(image(1, "abc"))):
            with pytest.raises(BinlogError, match=r"shop\.orders"):
                decode([(30, body)] * copies + [(30, body[:size])])


def test_an_event_that_goes_on_behind_its_images_is_refused() -> None:
    with pytest.raises(BinlogError, match="do not end where the event ends"):
        decode([(30, rows_event(10, [image(1, "abc"), b"\x00"]))])


def test_a_before_image_without_its_after_image_is_refused() -> None:
    with pytest.raises(BinlogError, match="without an after image"):
        decode([(31, rows_event(10, [image(1, "abc")], update=True))])


def test_an_event_with_another_number_of_columns_is_refused() -> None:
    with pytest.raises(BinlogError, match="10 columns"):
        decode([(30, rows_event(9, [image(1, "abc")]))])


def test_text_that_is_not_utf8_is_refused_by_column() -> None:
    body = rows_event(10, [image(1, "abc")]).replace(b"abc", b"\xff\xfe\xfd")
    with pytest.raises(BinlogError, match="column v"):
        decode([(30, body)])


def test_images_without_all_columns_are_refused() -> None:
    body = rows_event(10, [image(1, "abc")]).replace(b"\xff\x03", b"\xfd\x03")
    with pytest.raises(BinlogError) as failure:
        decode([(30, body)])
    assert "binlog_row_image=FULL" in failure.value.hint


@pytest.mark.parametrize("size", [0, 12, 15, 30])
def test_a_partial_update_that_is_cut_is_refused_by_table(size: int) -> None:
    body = rows_event(10, [image(1, "a"), b"\x00" + image(1, "b")], update=True)
    with pytest.raises(BinlogError, match=r"shop\.orders"):
        decode([(PARTIAL_UPDATE, body[:size])])


def test_a_partial_update_without_differences_is_an_update() -> None:
    body = rows_event(10, [image(1, "a"), b"\x00" + image(1, "b"), image(2, "c"), b"\x00" + image(3, "d")], update=True)
    images = decode([(30, rows_event(10, [image(9, "z")])), (PARTIAL_UPDATE, body)])
    assert images.columns[0].to_pylist() == [9, 1, 1, 2, 3]
    assert images.columns[1].to_pylist() == ["z", "a", "b", "c", "d"]
    assert images.kinds.tolist() == [30, 31]
    assert images.event.tolist() == [0, 1, 1, 1, 1]


def test_an_unknown_kind_of_event_is_refused() -> None:
    with pytest.raises(BinlogError, match="event type 19"):
        decode([(19, rows_event(10, [image(1, "abc")]))])


def test_a_literal_that_the_enum_has_not_is_refused() -> None:
    with_enum = parse_table_map(
        table_map(["e"], [t.STRING], b"\xf7\x01", [(10, b"\xfc\xff\x00"), (6, b"\x01\x01a")]), CHARSETS
    )
    body = rows_event(1, [row_image([b"\x02"])])
    with pytest.raises(BinlogError, match="column e"):
        decode_rows(body, np.array([0]), np.array([len(body)]), np.array([30]), with_enum)


def test_a_type_not_supported_is_refused_by_table_and_column() -> None:
    with_old = parse_table_map(table_map(["id", "flags"], [t.LONG, t.OLD_TIME], b""), CHARSETS)
    with pytest.raises(UnsupportedType, match=r"shop\.orders: column flags has the type time .format before"):
        decode_rows(b"", np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8), with_old)


def test_a_character_set_not_supported_is_refused() -> None:
    with_klingon = parse_table_map(table_map(["v"], [t.VARCHAR], b"\x14\x00", [(2, b"\x23")]), {35: "klingon"})
    with pytest.raises(UnsupportedType, match="character set klingon"):
        decode_rows(b"", np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8), with_klingon)
