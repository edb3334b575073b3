"""Tables as information_schema describes them, expressed in the terms of a table map event.

A full row image (seen on MySQL 9.7) has all columns of the table in ordinal order. That includes invisible columns,
stored generated columns and virtual generated columns, whose values are computed for the image. Only the hidden columns
of functional indexes are missing, and information_schema does not show these either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.config.patterns import BUILTIN, TableFilter
from incsnap.mysql.session import QueryRefusedError, named, query
from incsnap.tables import BYTE_STRINGS, Column, Index, TableId, TableShape, printed_charset
from incsnap.types.charsets import literal_text

_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"})
_SIZED = frozenset({"char", "varchar", "binary", "varbinary"})
_FRACTIONS = frozenset({"time", "datetime", "timestamp"})
_LISTS = frozenset({"enum", "set"})
_LITERAL = re.compile(r"(x?)'((?:[^'\\]|''|\\.)*)'", re.S)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)", re.I)
_ESCAPE = re.compile(r"''|\\(.)", re.S)
_ESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}


def tables(connection: Connection[Any], included: TableFilter) -> list[TableId]:
    """Return the base tables that `included` accepts and the user may see, in the order of their names."""
    return [table for table in all_tables(connection) if included.included(table)]


def all_tables(connection: Connection[Any]) -> list[TableId]:
    """Return the base tables that the user may see, without the server's own, in the order of their names."""
    rows = query(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
        " WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN %s ORDER BY TABLE_SCHEMA, TABLE_NAME",
        (tuple(sorted(BUILTIN)),),
    )
    return [TableId(str(database), str(name)) for database, name in rows]


def lower_case_table_names(connection: Connection[Any]) -> int:
    """Return how the server compares and stores names of tables.

    With 0, letter case counts. With 1 and 2, names are equal in any letter case. With 1, they are stored in lower case,
    and with 2 as a statement spells them.
    """
    return int(query(connection, "SELECT @@lower_case_table_names")[0][0])


def shape_of(connection: Connection[Any], table: TableId) -> TableShape | None:
    """Return the present shape of a table, or None if the table does not exist or the user may not see it."""
    return next(iter(shapes_of(connection, [table]).values()), None)


def shapes_of(connection: Connection[Any], ids: Sequence[TableId]) -> dict[TableId, TableShape]:
    """Return the shapes of the tables that exist, by their names on the server.

    Send two queries for each 500 tables.
    """
    shapes: dict[TableId, TableShape] = {}
    for part in _parts(ids):
        keys: dict[TableId, list[str]] = {}
        for database, name, column in query(
            connection,
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS"
            " WHERE INDEX_NAME = 'PRIMARY' AND (TABLE_SCHEMA, TABLE_NAME) IN %s"
            " ORDER BY TABLE_SCHEMA, TABLE_NAME, SEQ_IN_INDEX",
            (part,),
        ):
            keys.setdefault(TableId(database, name), []).append(column)
        columns: dict[TableId, list[Column]] = {}
        promoted: dict[TableId, set[str]] = {}
        for database, name, role, *rest in query(
            connection,
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_KEY, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE,"
            " CHARACTER_SET_NAME, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, DATETIME_PRECISION"
            " FROM information_schema.COLUMNS WHERE (TABLE_SCHEMA, TABLE_NAME) IN %s"
            " ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION",
            (part,),
        ):
            columns.setdefault(TableId(database, name), []).append(_column(*rest))
            if role == "PRI":
                promoted.setdefault(TableId(database, name), set()).add(rest[0])
        for table, in_order in columns.items():
            key = keys.get(table) or (_promoted_key(connection, table, promoted[table]) if table in promoted else [])
            places = {column.name: i for i, column in enumerate(in_order)}
            shapes[table] = TableShape(table, tuple(in_order), tuple(places[name] for name in key))
    return shapes


def collations_of(connection: Connection[Any], ids: Sequence[TableId]) -> dict[TableId, dict[str, str]]:
    """Return for each table the collation of each column that has one."""
    by_table: dict[TableId, dict[str, str]] = {}
    for part in _parts(ids):
        for database, name, column, collation in query(
            connection,
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS"
            " WHERE (TABLE_SCHEMA, TABLE_NAME) IN %s AND COLLATION_NAME IS NOT NULL",
            (part,),
        ):
            by_table.setdefault(TableId(database, name), {})[str(column)] = printed_charset(str(collation))
    return by_table


def row_counts(connection: Connection[Any], ids: Sequence[TableId]) -> dict[TableId, int]:
    """Return about how many rows each table has, by the server's statistics; 0 for a table without statistics."""
    counts = dict.fromkeys(ids, 0)
    for part in _parts(ids):
        for database, name, rows in query(
            connection,
            "SELECT TABLE_SCHEMA, TABLE_NAME, COALESCE(TABLE_ROWS, 0) FROM information_schema.TABLES"
            " WHERE (TABLE_SCHEMA, TABLE_NAME) IN %s",
            (part,),
        ):
            counts[TableId(str(database), str(name))] = int(rows)
    return counts


def indexes_of(connection: Connection[Any], ids: Sequence[TableId]) -> dict[TableId, list[Index]]:
    """Return the visible B-tree indexes of each table: the primary key first, then unique indexes, then the others."""
    by_table: dict[TableId, dict[str, list[tuple[str | None, bool]]]] = {}
    for part in _parts(ids):
        for database, name, index, column, prefix, direction in query(
            connection,
            "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART, COLLATION"
            " FROM information_schema.STATISTICS"
            " WHERE (TABLE_SCHEMA, TABLE_NAME) IN %s AND IS_VISIBLE = 'YES' AND INDEX_TYPE = 'BTREE'"
            " ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME <> 'PRIMARY', NON_UNIQUE, INDEX_NAME, SEQ_IN_INDEX",
            (part,),
        ):
            indexes = by_table.setdefault(TableId(database, name), {})
            indexes.setdefault(str(index), []).append((None if prefix is not None else column, direction == "D"))
    return {table: [_index(*index) for index in indexes.items()] for table, indexes in by_table.items()}


def _index(name: str, parts: Sequence[tuple[str | None, bool]]) -> Index:
    descending = tuple(column for column, descends in parts if descends and column is not None)
    return Index(name, tuple(column for column, _ in parts), descending)


def _parts(ids: Sequence[TableId]) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield pairs of database and table name, in tuples of at most 500."""
    for start in range(0, len(ids), 500):
        yield tuple((table.database, table.table) for table in ids[start : start + 500])


def _promoted_key(connection: Connection[Any], table: TableId, columns: set[str]) -> list[str]:
    """Return the columns of the unique key without NULLs that replaces a missing primary key, in the key's order.

    Table map events report such a key as the primary key. SHOW INDEX lists keys in the server's order. So the first key
    with these columns is the right one.
    """
    indexes: dict[str, list[str]] = {}
    try:
        rows = named(connection, f"SHOW INDEX FROM {table.sql}")
    except QueryRefusedError:
        return []  # the table was dropped, or may not be read, which preflight reports
    for row in rows:
        if not row["Non_unique"] and not row["Sub_part"]:
            indexes.setdefault(row["Key_name"], []).append(row["Column_name"])
    return next((key for key in indexes.values() if set(key) == columns and len(key) == len(columns)), [])


def database_charsets(connection: Connection[Any]) -> dict[str, str]:
    """Return the default character set of each database that the user may see."""
    rows = query(connection, "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA")
    return {str(database): printed_charset(str(charset)) for database, charset in rows}


def server_charset(connection: Connection[Any]) -> tuple[str, str]:
    """Return the server's default character set and collation."""
    charset, collation = query(connection, "SELECT @@GLOBAL.character_set_server, @@GLOBAL.collation_server")[0]
    return printed_charset(str(charset)), printed_charset(str(collation))


def charsets(connection: Connection[Any]) -> dict[int, str]:
    """Return the character set of each collation id in table map events: `{255: "utf8mb4", 63: "binary", ...}`."""
    rows = query(connection, "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS")
    return {int(collation): printed_charset(str(charset)) for collation, charset in rows}


def _column(
    name: str,
    data_type: str,
    column_type: str | bytes,
    nullable: str,
    charset: str | None,
    octets: int | None,
    precision: int | None,
    fraction: int | None,
) -> Column:
    """Return a column for one row of information_schema.COLUMNS."""
    kind = data_type.lower()
    declared = column_type.decode() if isinstance(column_type, bytes) else column_type
    # NUMERIC_PRECISION may be wrong: 81 for a decimal(65,0) that CREATE TABLE ... SELECT made of a number with 81
    # digits.
    digits = _DECIMAL.match(declared) if kind == "decimal" else None
    without_charset = "binary" if kind in BYTE_STRINGS or kind in _LISTS else ""
    return Column(
        name=name,
        type=kind,
        nullable=nullable == "YES",
        unsigned=kind in _NUMBERS and " unsigned" in declared.lower(),
        length=int((precision if kind == "bit" else octets if kind in _SIZED else 0) or 0),
        precision=int(digits[1]) if digits else 0,
        scale=int(digits[2]) if digits else 0,
        fraction=int(fraction or 0) if kind in _FRACTIONS else 0,
        charset=printed_charset(charset or without_charset),
        values=literals(declared) if kind in _LISTS else (),
    )


def literals(declared: str) -> tuple[str, ...]:
    """Return the values of `enum('a','it''s',x'ff')`.

    The server shows a value in hexadecimal if utf8mb3 cannot represent it.
    """
    shown = _LITERAL.findall(declared)
    return tuple(literal_text(bytes.fromhex(text), "binary") if x else _unescape(text) for x, text in shown)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: "'" if match[1] is None else _ESCAPED.get(match[1], match[1]), text)
