"""Tests with damaged bytes: decoding and encoding always end, and raise nothing but IncsnapError."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incsnap.binlog.protocol import wire_types as t
from incsnap.binlog.protocol.row_images import RowImages, decode_rows
from incsnap.binlog.protocol.table_map import TableMap, parse_table_map
from incsnap.binlog.protocol.unreadable import STRICT
from incsnap.config.settings import FailureHandling
from incsnap.errors import IncsnapError
from incsnap.types.column_type import describe
from incsnap.types.json.binary import json_text
from incsnap.types.modes import Modes
from tests.support.binary_json import difference
from tests.support.packets import packed_decimal, row_image, rows_event, table_map

CHARSETS = {255: "utf8mb4", 63: "binary", 8: "latin1", 13: "sjis", 54: "utf16"}
NAMES = ["i", "v", "b", "e", "d", "dt", "j", "w", "l", "n", "tm", "ts", "y", "bin",
         "bit", "set", "point", "vector", "sjis", "utf16"]  # fmt: skip
CODES = [t.LONG, t.VARCHAR, t.BLOB, t.STRING, t.NEWDECIMAL, t.DATETIME2, t.JSON, t.NEWDECIMAL, t.VARCHAR, t.DATE,
         t.TIME2, t.TIMESTAMP2, t.YEAR, t.STRING, t.BIT, t.STRING, t.GEOMETRY, t.VECTOR, t.VARCHAR, t.BLOB]  # fmt: skip
META = (
    b"\x2c\x01"
    + b"\x04"
    + b"\xf7\x01"
    + b"\x0c\x02"
    + b"\x06"
    + b"\x04"
    + b"\x41\x1e"
    + b"\x0a\x00"
    + b"\x03\x06"
    + b"\xfe\x05"
    + b"\x04\x01"
    + b"\xf8\x01"
    + b"\x04"
    + b"\x04"
    + b"\x14\x00"
    + b"\x02"
)
FIELDS = [
    (3, b"\xfc\xff\x00" + b"\x3f" + b"\x08" + b"\x3f" + b"\x3f" + b"\x0d" + b"\x36"),
    (10, b"\xfc\xff\x00"),
    (5, b"\x02\x01a\x01b"),
    (6, b"\x02\x01a\x01b"),
    (7, b"\x01"),
    (8, b"\x00"),
]
MAP = table_map(NAMES, CODES, META, FIELDS, nullable=0xFFFFE)
TABLE = parse_table_map(MAP, CHARSETS)
VALUES = [
    b"\x01\0\0\0", b"\x03\x00abc", b"\x02\0\0\0\xff\xfe", b"\x02", packed_decimal(-12345, 12, 2), bytes(8),
    b"\x0d\0\0\0" + b"\x00\x01\x00\x0c\x00\x0b\x00\x01\x00\x04\x01\x00a", packed_decimal(7, 65, 30), b"\x02\xe9x",
    b"\x21\x00\x00", b"\x80\x00\x01\x00\x01", bytes(7), b"\x10", b"\x02ab",
    b"\x0f\xff", b"\x03", b"\x19\0\0\0" + bytes(4) + b"\x01\x01\0\0\0" + bytes(16), b"\x08\0\0\0" + bytes(8),
    b"\x02\x83\x5c", b"\x02\x00\x4e\x2d",
]  # fmt: skip


def body(count: int) -> bytes:
    return rows_event(
        len(CODES), [row_image([None if (i + n) % 5 == 4 else v for i, v in enumerate(VALUES)]) for n in range(count)]
    )


def decode(
    bodies: list[bytes], kinds: list[int], table: TableMap = TABLE, handling: FailureHandling = STRICT
) -> RowImages:
    sizes = [len(one) for one in bodies]
    ends = np.cumsum(sizes, dtype=np.int64)
    images = decode_rows(b"".join(bodies), ends - sizes, ends, np.array(kinds, np.uint8), table, handling=handling)
    for column, values in zip(table.shape.columns, images.columns, strict=True):
        describe(column, table.shape.id).encode(values, Modes())
    return images


def rows(images: RowImages) -> list[tuple[int, tuple[object, ...]]]:
    """Return (event, values) of each image."""
    values = zip(*(column.to_pylist() for column in images.columns), strict=True)
    return list(zip(images.event.tolist(), values, strict=True))


damage = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6)


def damaged(raw: bytes, changes: list[tuple[int, int]], cut: int) -> bytes:
    changed = bytearray(raw)
    for place, byte in changes:
        changed[place % len(changed)] = byte
    return bytes(changed[: max(len(changed) - cut, 0)])


@given(damage, st.integers(0, 80), st.integers(1, 12), st.sampled_from([23, 30, 31, 32]), st.sampled_from([0, 50]))
@settings(max_examples=300, deadline=None)
def test_damaged_rows_events_never_hang_and_raise_only_our_errors(
    changes: list[tuple[int, int]], cut: int, count: int, kind: int, others: int
) -> None:
    # With 50 more events the damaged one is walked in lock-step. Without them it is walked alone.
    with suppress(IncsnapError):
        decode([damaged(body(count), changes, cut)] + [body(1)] * others, [kind] + [30] * others)


@given(st.binary(max_size=300), st.sampled_from([0, 50]))
@settings(max_examples=200, deadline=None)
def test_any_bytes_for_an_event_never_hang_and_raise_only_our_errors(raw: bytes, others: int) -> None:
    with suppress(IncsnapError):
        decode([raw] + [body(1)] * others, [30] * (1 + others))


LENIENT = FailureHandling(processing="skip", converting="skip", inconsistent_schema="skip")


@given(damage, st.integers(0, 80), st.sampled_from([23, 30, 31, 39]), st.sampled_from([2, 50]), st.integers(0, 60))
@settings(max_examples=200, deadline=None)
def test_the_rows_of_whole_events_come_out_of_a_slice_with_a_damaged_one(
    changes: list[tuple[int, int]], cut: int, kind: int, others: int, place: int
) -> None:
    # A damaged value of a NOT NULL column is an error in any mode. Here only i is NOT NULL, and any bytes are a value
    # of it.
    bodies, kinds = [body(1 + number % 3) for number in range(others)], [30] * others
    right = rows(decode(bodies, kinds))
    place %= others
    bodies.insert(place, damaged(body(4), changes, cut))
    kinds.insert(place, kind)
    images = decode(bodies, kinds, handling=LENIENT)
    kept = [(event - (event > place), values) for event, values in rows(images) if event != place]
    assert kept == right
    assert set(images.dropped.tolist()) <= {place}


@given(st.integers(0, 400), st.integers(1, 6), st.sampled_from([0, 50]))
@settings(max_examples=200, deadline=None)
def test_an_event_that_is_cut_gives_no_row_that_is_not_right(cut: int, count: int, others: int) -> None:
    """Cut an event. If it is cut between two images, it looks whole: only the stream's own checks find that."""
    whole = rows(decode([body(count)], [30]))
    raw = body(count)
    images = decode([raw[: max(len(raw) - cut, 0)], *[body(1)] * others], [30] * (others + 1), handling=LENIENT)
    decoded = [each for each in rows(images) if each[0] == 0]
    assert decoded == whole[: len(decoded)]


partial_event = st.builds(
    lambda differences, options, bits, nulls: rows_event(
        len(CODES),
        [
            row_image(VALUES),
            bytes([options]) + (bytes([bits]) if options & 1 else b"") + nulls.to_bytes(3, "little")
            + b"".join(
                len(differences).to_bytes(4, "little") + differences if code == t.JSON and options & bits & 1 else value
                for place, (code, value) in enumerate(zip(CODES, VALUES, strict=True)) if not nulls >> place & 1
            ),
        ],
        update=True,
    ),
    st.binary(max_size=40)
    | st.just(difference("replace", "$.a", [1]))
    | st.just(difference("insert", "$.b", "x") + difference("remove", "$.a")),
    st.sampled_from([0, 1, 1, 1, 2]),
    st.integers(0, 1),
    st.sampled_from([0xF00000, 0xF00000, 0xF00040, 0xFFFFFF]),
)  # fmt: skip


@given(partial_event, damage, st.integers(0, 30))
@settings(max_examples=300, deadline=None)
def test_partial_updates_never_hang_and_raise_only_our_errors(
    raw: bytes, changes: list[tuple[int, int]], cut: int
) -> None:
    for handling in (STRICT, LENIENT):
        with suppress(IncsnapError):
            decode([damaged(raw, changes, cut), body(1)], [39, 30], handling=handling)


def test_rows_of_a_table_without_columns_are_refused() -> None:
    """Check that images without bytes are refused, because a walk over them would never end."""
    nothing = parse_table_map(table_map([], [], b""), CHARSETS)
    empty = rows_event(0, [])
    assert not decode([empty], [30], nothing).columns
    with pytest.raises(IncsnapError, match="no columns"):
        decode([empty + b"x"], [30], nothing)


@given(damage, st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_damaged_table_maps_and_rows_read_by_them_raise_only_our_errors(
    changes: list[tuple[int, int]], cut: int
) -> None:
    with suppress(IncsnapError):
        table = parse_table_map(damaged(MAP, changes, cut), CHARSETS)
        # Decoding rows by the damaged map must end as well.
        decode([body(3)], [30], table)


@given(
    st.one_of(
        st.binary(max_size=200),
        st.builds(bytes.__add__, st.sampled_from([b"\0", b"\1", b"\2", b"\3"]), st.binary(max_size=300)),
    )
)
@settings(max_examples=400, deadline=None)
def test_any_bytes_for_json_end_in_text_or_a_value_error(raw: bytes) -> None:
    with suppress(ValueError):
        json_text(raw)


def test_the_undamaged_event_is_decoded() -> None:
    """Check that only the damage in the other tests causes errors there."""
    images = [values for _, values in rows(decode([body(5)], [30]))]

    assert len({repr(values) for values in images}) == 5
    assert all(values[0] is not None or row == 4 for row, values in enumerate(images))
    assert rows(decode([body(5)] * 60, [30] * 60)) == [(event, values) for event in range(60) for values in images]
