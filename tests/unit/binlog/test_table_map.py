"""Tests of the reader of table maps, with events made by hand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from incsnap.binlog.protocol import wire_types as t
from incsnap.binlog.protocol.table_map import completed, parse_table_map, table_maps, tells_names
from incsnap.binlog.protocol.wire_types import WireColumn
from incsnap.errors import BinlogError
from incsnap.tables import Column, TableId
from tests.support.packets import lenenc_string, table_map

CHARSETS = {255: "utf8mb4", 63: "binary", 8: "latin1"}


def test_names_types_signs_charsets_literals_and_key_are_read() -> None:
    body = table_map(
        ["id", "name", "raw", "kind", "price", "at", "note"],
        [t.LONGLONG, t.VARCHAR, t.STRING, t.STRING, t.NEWDECIMAL, t.DATETIME2, t.BLOB],
        b"\xfc\x03" + b"\xfe\x10" + b"\xf7\x01" + b"\x0c\x02" + b"\x03" + b"\x03",
        [
            (1, b"\x80"),
            (2, b"\xfc\xff\x00" + b"\x01\x3f"),
            (10, b"\x08"),
            (6, b"\x02" + lenenc_string(b"a") + lenenc_string(b"\x80")),
            (9, b"\x00\x00\x01\x0a"),
            (12, b"\xff"),
            (99, b"of a later server"),
        ],
        nullable=0b1110110,
    )
    parsed = parse_table_map(body, CHARSETS)
    assert parsed.shape.id == TableId("shop", "orders")
    assert parsed.shape.key == (0, 1)
    assert parsed.wire == (
        WireColumn(t.LONGLONG, 0),
        WireColumn(t.VARCHAR, 1020),
        WireColumn(t.STRING, 16),
        WireColumn(t.ENUM, 1),
        WireColumn(t.NEWDECIMAL, 12 << 8 | 2),
        WireColumn(t.DATETIME2, 3),
        WireColumn(t.BLOB, 3),
    )
    assert parsed.shape.columns == (
        Column("id", "bigint", nullable=False, unsigned=True),
        Column("name", "varchar", length=1020, charset="utf8mb4"),
        Column("raw", "binary", length=16, charset="binary"),
        Column("kind", "enum", nullable=False, charset="latin1", values=("a", "€")),
        Column("price", "decimal", precision=12, scale=2),
        Column("at", "datetime", fraction=3),
        Column("note", "mediumtext", charset="utf8mb4"),
    )


def test_equal_events_are_parsed_once() -> None:
    maps = table_maps(CHARSETS)
    body = table_map(["id"], [t.LONG], b"")
    assert maps(body[6:]) is maps(bytes(bytearray(body[6:])))
    assert maps(body[6:]) == parse_table_map(body, CHARSETS)


def test_a_char_of_more_than_255_bytes_keeps_its_length_in_the_type_byte() -> None:
    # char(255) utf8mb4: 1020 bytes, 0x3FC. Its bits 8 and 9 are inverted in the bits 0x30 of the type byte.
    parsed = parse_table_map(table_map(["c"], [t.STRING], b"\xce\xfc", [(3, b"\xfc\xff\x00")]), CHARSETS)
    assert parsed.wire == (WireColumn(t.STRING, 1020),)


def test_types_that_are_not_supported_are_described_by_name() -> None:
    body = table_map(["b", "s", "g", "t"], [t.BIT, t.STRING, t.GEOMETRY, t.OLD_TIMESTAMP], b"\x01\x02\xf8\x01\x04")
    names = [column.type for column in parse_table_map(body, CHARSETS).shape.columns]
    assert names == ["bit", "set", "geometry", "timestamp (format before MySQL 5.6)"]


#: A table with six columns: the fields that MINIMAL metadata has, and those that FULL adds.
_TYPES = [t.LONG, t.VARCHAR, t.STRING, t.STRING, t.GEOMETRY, t.NEWDECIMAL]
_META = b"\x50\x00" + b"\xf7\x01" + b"\xf8\x02" + b"\x04" + b"\x0c\x02"
_MINIMAL = [(1, b"\x80"), (2, b"\xfc\xff\x00"), (7, b"\x01")]
_FULL = [
    *_MINIMAL,
    (10, b"\x08"),
    (5, b"\x09" + b"".join(lenenc_string(b"s%d" % n) for n in range(9))),
    (6, b"\x02" + lenenc_string(b"a") + lenenc_string(b"\x80")),
    (8, b"\x00"),
]
_NAMES = ["id", "name", "kind", "some", "at", "price"]


def _maps() -> tuple[bytes, bytes]:
    """Return the maps of one table, with MINIMAL and with FULL metadata."""
    nulls = 0b111110
    return table_map([], _TYPES, _META, _MINIMAL, nullable=nulls), table_map(
        _NAMES, _TYPES, _META, _FULL, nullable=nulls
    )


def test_what_a_map_without_names_lacks_comes_from_a_definition() -> None:
    minimal, full = (parse_table_map(body, CHARSETS) for body in _maps())
    assert (minimal.named, full.named) == (False, True)
    assert {column.name for column in minimal.shape.columns} == {""}
    assert completed(minimal, full.shape) == full


_CONTRADICTIONS: list[tuple[int, dict[str, Any]]] = [
    (0, {"type": "mediumint"}),
    (0, {"unsigned": False}),
    (0, {"nullable": True}),
    (1, {"length": 81}),
    (1, {"charset": "latin1"}),
    (2, {"values": tuple(map(str, range(256)))}),
    (3, {"values": tuple(map(str, range(8)))}),
    (3, {"values": tuple(map(str, range(33)))}),
    (4, {"type": "linestring"}),
    (5, {"precision": 13}),
    (5, {"scale": 3}),
]


@pytest.mark.parametrize(("column", "other"), _CONTRADICTIONS)
def test_a_definition_that_a_map_contradicts_is_not_of_its_rows(column: int, other: dict[str, Any]) -> None:
    minimal, full = (parse_table_map(body, CHARSETS) for body in _maps())
    columns = list(full.shape.columns)
    columns[column] = replace(columns[column], **other)
    with pytest.raises(ValueError, match=f"column {column + 1} of its rows is .*{columns[column].name} as the server"):
        completed(minimal, replace(full.shape, columns=tuple(columns)))


def test_a_definition_of_more_columns_is_not_of_these_rows() -> None:
    minimal, full = (parse_table_map(body, CHARSETS) for body in _maps())
    with pytest.raises(ValueError, match="its rows have 6 columns, the table as the server describes it has 5"):
        completed(minimal, replace(full.shape, columns=full.shape.columns[1:]))


def test_whether_a_map_tells_names_is_seen_without_reading_it_whole() -> None:
    minimal, full = _maps()
    assert not tells_names(minimal[6:])
    assert tells_names(full[6:])
    assert tells_names(full[6:20])  # damaged: decoding its rows will report the error


def test_a_map_that_names_some_of_its_columns_is_damaged() -> None:
    with pytest.raises(BinlogError, match=r"shop\.orders is damaged: it names 1 of 2 columns"):
        parse_table_map(table_map(["id"], [t.LONG, t.LONG], b""), CHARSETS)


@pytest.mark.parametrize("number", [200, 249, 250, 251])
def test_a_type_of_unknown_number_is_refused_by_table(number: int) -> None:
    with pytest.raises(BinlogError, match=rf"shop\.orders holds a column of type number {number}"):
        parse_table_map(table_map(["x"], [number], b"\x01"), CHARSETS)


def test_every_cut_table_map_is_refused() -> None:
    body = table_map(["id", "e"], [t.LONG, t.STRING], b"\xf7\x01", [(10, b"\x08"), (6, b"\x01" + lenenc_string(b"a"))])
    whole = parse_table_map(body, CHARSETS)
    for size in range(len(body)):
        # A map that is cut between two fields of the optional metadata is a shorter valid map.
        with suppress(BinlogError):
            assert parse_table_map(body[:size], CHARSETS) != whole
