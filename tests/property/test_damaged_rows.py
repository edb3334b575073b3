"""Damaged bytes: whatever they are, decoding ends and raises nothing but IncsnapError."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from incsnap.binlog import wire_types as t
from incsnap.binlog.row_images import decode_rows
from incsnap.binlog.table_map import TableMap, parse_table_map
from incsnap.errors import IncsnapError
from incsnap.types.binlog_json import json_text
from tests.support.packets import packed_decimal, row_image, rows_event, table_map

CHARSETS = {255: "utf8mb4", 63: "binary", 8: "latin1"}
NAMES = ["i", "v", "b", "e", "d", "dt", "j", "w", "l", "n", "tm", "ts", "y", "bin"]
CODES = [t.LONG, t.VARCHAR, t.BLOB, t.STRING, t.NEWDECIMAL, t.DATETIME2, t.JSON, t.NEWDECIMAL, t.VARCHAR, t.DATE,
         t.TIME2, t.TIMESTAMP2, t.YEAR, t.STRING]  # fmt: skip
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
)
FIELDS = [
    (3, b"\xfc\xff\x00" + b"\x3f" + b"\x08" + b"\x3f"),
    (10, b"\xfc\xff\x00"),
    (6, b"\x02\x01a\x01b"),
    (8, b"\x00"),
]
MAP = table_map(NAMES, CODES, META, FIELDS, nullable=0x3FFE)
TABLE = parse_table_map(MAP, CHARSETS)
VALUES = [
    b"\x01\0\0\0", b"\x03\x00abc", b"\x02\0\0\0\xff\xfe", b"\x02", packed_decimal(-12345, 12, 2), bytes(8),
    b"\x0d\0\0\0" + b"\x00\x01\x00\x0c\x00\x0b\x00\x01\x00\x04\x01\x00a", packed_decimal(7, 65, 30), b"\x02\xe9x",
    b"\x21\x00\x00", b"\x80\x00\x01\x00\x01", bytes(7), b"\x10", b"\x02ab",
]  # fmt: skip


def body(count: int) -> bytes:
    return rows_event(
        len(CODES), [row_image([None if (i + n) % 5 == 4 else v for i, v in enumerate(VALUES)]) for n in range(count)]
    )


def decode(bodies: list[bytes], kinds: list[int], table: TableMap = TABLE) -> None:
    sizes = [len(one) for one in bodies]
    ends = np.cumsum(sizes, dtype=np.int64)
    decode_rows(b"".join(bodies), ends - sizes, ends, np.array(kinds, np.uint8), table)


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
    # With 50 more events the damaged one is walked in lock-step, without them alone.
    with suppress(IncsnapError):
        decode([damaged(body(count), changes, cut)] + [body(1)] * others, [kind] + [30] * others)


@given(st.binary(max_size=300), st.sampled_from([0, 50]))
@settings(max_examples=200, deadline=None)
def test_any_bytes_for_an_event_never_hang_and_raise_only_our_errors(raw: bytes, others: int) -> None:
    with suppress(IncsnapError):
        decode([raw] + [body(1)] * others, [30] * (1 + others))


@given(damage, st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_damaged_table_maps_and_rows_read_by_them_raise_only_our_errors(
    changes: list[tuple[int, int]], cut: int
) -> None:
    with suppress(IncsnapError):
        table = parse_table_map(damaged(MAP, changes, cut), CHARSETS)
        # Whatever table it has become, decoding rows by it must end as well.
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
    decode([body(5)] * 60, [30] * 60)
