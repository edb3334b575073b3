"""Tests of the rows of a slice, by table and shape, in binlog order, decoded as columns."""

from __future__ import annotations

import struct

import pytest

from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol import wire_types as t
from incsnap.binlog.protocol.row_images import DELETE, WRITE
from incsnap.binlog.table_rows import Charsets, TableRows, table_rows
from incsnap.errors import BinlogError, DefinitionUnknown
from tests.support import binlog_bytes as made
from tests.support.packets import row_image, rows_event, table_map
from tests.support.stream_in_memory import slice_of

CHARSETS: Charsets = ((255, "utf8mb4"),)
Event = tuple[int, bytes]


def map_of(table: str, *columns: str, table_id: int = 7, flags: int = 1) -> Event:
    body = table_map(columns, [t.LONG] * len(columns), b"", table_id=table_id)
    named = body.replace(b"\x06orders\0", bytes([len(table)]) + table.encode() + b"\0")
    return kinds.TABLE_MAP, named[:6] + flags.to_bytes(2, "little") + named[8:]


def rows(*values: int, columns: int = 1, table_id: int = 7, kind: int = made.WRITE) -> Event:
    images = [row_image([struct.pack("<i", value)] * columns) for value in values]
    return kind, rows_event(columns, images, table_id=table_id)


def shown(groups: list[TableRows]) -> list[tuple[str, int, list[int]]]:
    """Return (table, number of columns, values of the first column) of each group of rows."""
    return [(each.shape.id.table, len(each.shape.columns), each.decode().columns[0].to_pylist()) for each in groups]


def test_rows_come_by_table_in_the_order_in_which_tables_appear() -> None:
    slice_ = slice_of(
        [map_of("u", "id", table_id=8), map_of("t", "id"), rows(1), rows(2, 3, table_id=8)],
        [map_of("t", "id"), rows(4), rows(5, kind=made.DELETE)],
    )
    assert shown(table_rows(slice_, CHARSETS)) == [("u", 1, [2, 3]), ("t", 1, [1, 4, 5])]


def test_a_table_comes_once_for_each_shape_that_it_has_one_after_another() -> None:
    wide = [map_of("t", "id", "v"), rows(2, columns=2)]
    slice_ = slice_of([map_of("t", "id"), rows(1)], wide, wide, [map_of("t", "id"), rows(3)])
    assert shown(table_rows(slice_, CHARSETS)) == [("t", 1, [1]), ("t", 2, [2, 2]), ("t", 1, [3])]


def test_another_table_id_or_other_flags_are_no_other_shape() -> None:
    slice_ = slice_of([map_of("t", "id"), rows(1)], [map_of("t", "id", table_id=9, flags=0), rows(2, table_id=9)])
    assert shown(table_rows(slice_, CHARSETS)) == [("t", 1, [1, 2])]


def test_a_table_without_rows_is_left_out() -> None:
    slice_ = slice_of([map_of("t", "id"), map_of("u", "id", table_id=8), rows(1, table_id=8)])
    assert shown(table_rows(slice_, CHARSETS)) == [("u", 1, [1])]


def test_a_table_map_without_rows_needs_no_definition() -> None:
    unnamed = kinds.TABLE_MAP, table_map([], [t.LONG], b"", table_id=8)
    slice_ = slice_of([map_of("t", "id"), unnamed, rows(1), rows(2)])
    assert shown(table_rows(slice_, CHARSETS)) == [("t", 1, [1, 2])]
    with pytest.raises(DefinitionUnknown):
        table_rows(slice_of([map_of("t", "id"), unnamed, rows(1), rows(2, table_id=8)]), CHARSETS)


def test_rows_of_some_kinds_are_chosen_before_they_are_decoded() -> None:
    [group] = table_rows(slice_of([map_of("t", "id"), rows(1), rows(2, kind=made.DELETE), rows(3)]), CHARSETS)
    assert shown([group.of_kinds(WRITE)]) == [("t", 1, [1, 3])]
    assert shown([group.of_kinds(DELETE)]) == [("t", 1, [2])]
    assert group.of_kinds(WRITE).events.tolist() == [1, 3]
    assert not len(group.of_kinds(()).events)


def test_what_is_wrong_with_an_event_is_told_by_its_place() -> None:
    slice_ = slice_of([map_of("t", "id"), rows(1), rows(2, columns=2)])
    place = slice_.place(2)
    [group] = table_rows(slice_, CHARSETS)
    with pytest.raises(BinlogError, match=f"{place}: shop.t: the rows event does not have the 1 columns"):
        group.decode()


def test_a_map_that_cannot_be_read_is_told_by_its_place() -> None:
    slice_ = slice_of([map_of("t", "id"), rows(1)], [(kinds.TABLE_MAP, made.map_body(80, "bad")), made_rows(80)])
    with pytest.raises(BinlogError, match=slice_.place(2)):
        table_rows(slice_, CHARSETS)


def made_rows(table_id: int) -> Event:
    return made.WRITE, made.rows_body(table_id, b"a")
