"""Tests of the text rows of a SELECT: valid rows give their values, damaged rows an error of the driver at once."""

from __future__ import annotations

import struct
import time
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysql.err import MySQLError

from incsnap.columns.packets import Packets
from incsnap.mysql.text_rows import TextRows, columns_of
from tests.support.packets import lenenc_string

VALUES = st.none() | st.binary(max_size=30) | st.binary(min_size=250, max_size=300)
TABLES = st.integers(1, 5).flatmap(lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1))


def text_rows(packets: list[bytes]) -> TextRows:
    sizes = np.array([len(packet) for packet in packets], np.int64)
    ends = np.cumsum(sizes)
    return TextRows(Packets.of(b"".join(packets)), ends - sizes, ends)


@given(TABLES)
def test_rows_give_their_values(rows: list[list[bytes | None]]) -> None:
    packets = [b"".join(map(lenenc_string, row)) for row in rows]
    columns = columns_of(text_rows(packets), len(rows[0]))
    assert [list(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)] == rows


@given(
    TABLES, st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 255)), min_size=1, max_size=4), st.integers(1, 6)
)
def test_damaged_rows_end_in_values_or_the_drivers_error(
    rows: list[list[bytes | None]], changes: list[tuple[int, int]], width: int
) -> None:
    packets = [bytearray(b"".join(map(lenenc_string, row))) for row in rows]
    for place, mask in changes:
        packet = packets[place % len(packets)]
        packet[place % len(packet)] ^= mask
    with suppress(MySQLError):
        columns = columns_of(text_rows([bytes(packet) for packet in packets]), width)
        assert {len(column) for column in columns} == {len(rows)}


@given(TABLES, st.integers(0, 60))
def test_a_row_that_is_cut_is_refused(rows: list[list[bytes | None]], cut: int) -> None:
    packets = [b"".join(map(lenenc_string, row)) for row in rows]
    last = packets[-1][: max(len(packets[-1]) - 1 - cut, 0)]
    with pytest.raises(MySQLError):
        columns_of(text_rows([*packets[:-1], last]), len(rows[0]))


@pytest.mark.parametrize("length", [1 << 60, (1 << 64) - 1, 1 << 63, 1 << 32])
def test_a_value_of_an_impossible_length_takes_neither_time_nor_memory(length: int) -> None:
    begun = time.process_time()
    with pytest.raises(MySQLError):
        columns_of(text_rows([b"\x01a" * 2, b"\xfe" + struct.pack("<Q", length) + b"abc"] * 500), 2)
    assert time.process_time() - begun < 1
