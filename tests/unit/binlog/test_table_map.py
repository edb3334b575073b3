"""Table map events made by hand."""

from __future__ import annotations

from contextlib import suppress

import pytest

from incsnap.binlog.protocol import wire_types as t
from incsnap.binlog.protocol.table_map import TableMaps, parse_table_map
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
    found = parse_table_map(body, CHARSETS)
    assert found.shape.id == TableId("shop", "orders")
    assert found.shape.key == (0, 1)
    assert found.wire == (
        WireColumn(t.LONGLONG, 0),
        WireColumn(t.VARCHAR, 1020),
        WireColumn(t.STRING, 16),
        WireColumn(t.ENUM, 1),
        WireColumn(t.NEWDECIMAL, 12 << 8 | 2),
        WireColumn(t.DATETIME2, 3),
        WireColumn(t.BLOB, 3),
    )
    assert found.shape.columns == (
        Column("id", "bigint", nullable=False, unsigned=True),
        Column("name", "varchar", length=1020, charset="utf8mb4"),
        Column("raw", "binary", length=16, charset="binary"),
        Column("kind", "enum", nullable=False, charset="latin1", values=("a", "€")),
        Column("price", "decimal", precision=12, scale=2),
        Column("at", "datetime", fraction=3),
        Column("note", "mediumtext", charset="utf8mb4"),
    )


def test_equal_events_are_parsed_once() -> None:
    maps = TableMaps(CHARSETS)
    body = table_map(["id"], [t.LONG], b"")
    assert maps.of(body) is maps.of(b"\x07\x00\x00\x00\x00\x00" + body[6:])
    assert maps.of(body) == parse_table_map(body, CHARSETS)


def test_a_char_of_more_than_255_bytes_keeps_its_length_in_the_type_byte() -> None:
    # char(255) utf8mb4: 1020 bytes, 0x3FC; bits 8 and 9 inverted in 0x30 of the type byte.
    found = parse_table_map(table_map(["c"], [t.STRING], b"\xce\xfc", [(3, b"\xfc\xff\x00")]), CHARSETS)
    assert found.wire == (WireColumn(t.STRING, 1020),)


def test_types_that_are_not_supported_are_described_by_name() -> None:
    body = table_map(["b", "s", "g", "t"], [t.BIT, t.STRING, t.GEOMETRY, t.OLD_TIMESTAMP], b"\x01\x02\xf8\x01\x04")
    names = [column.type for column in parse_table_map(body, CHARSETS).shape.columns]
    assert names == ["bit", "set", "geometry", "timestamp (format before MySQL 5.6)"]


def test_minimal_metadata_is_refused_with_the_setting_that_helps() -> None:
    with pytest.raises(BinlogError, match=r"shop\.orders") as failure:
        parse_table_map(table_map([], [t.LONG], b""), CHARSETS)
    assert "binlog_row_metadata=FULL" in failure.value.hint


def test_a_type_of_unknown_number_is_refused_by_table() -> None:
    with pytest.raises(BinlogError, match=r"shop\.orders holds a column of type number 200"):
        parse_table_map(table_map(["x"], [200], b""), CHARSETS)


def test_every_cut_table_map_is_refused() -> None:
    body = table_map(["id", "e"], [t.LONG, t.STRING], b"\xf7\x01", [(10, b"\x08"), (6, b"\x01" + lenenc_string(b"a"))])
    whole = parse_table_map(body, CHARSETS)
    for size in range(len(body)):
        # Cut between two fields of the optional metadata, it is a shorter event that is whole.
        with suppress(BinlogError):
            assert parse_table_map(body[:size], CHARSETS) != whole
