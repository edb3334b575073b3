"""The comparison of a table, as MySQL shows it, with the rows that a replay of its topic gave.

PyMySQL reads the table. SQL and a few lines here turn its rows into Debezium's JSON. Nothing of incsnap's decoding is
used, because a defect there must not hide itself. Types that neither the demo nor the tests use are refused.
https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-data-types
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor, SSCursor

from incsnap.errors import shorten
from incsnap.tables import TableId, quote
from lab.history import Findings

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _ComparedColumn:
    name: str  #: name in the table and in the record
    sql: str  #: selects the value, or something from which the value is made
    of_table: Convert | None = None  #: converts the value that MySQL returns; None: no conversion
    #: converts the record's value if its JSON text may differ (JSON in JSON); None: no conversion
    of_record: Convert | None = None


@dataclass(slots=True)
class Comparison:
    """The differences between a table and its topic. They are equal if there are no findings."""

    rows: int = 0  #: rows of the table
    missing: Findings = field(default_factory=Findings)  #: rows that only the table has
    extra: Findings = field(default_factory=Findings)  #: rows that only the topic has
    different: Findings = field(default_factory=Findings)  #: rows with different values

    @property
    def unequal(self) -> int:
        """Return the number of rows that are missing, extra or different."""
        return self.missing.count + self.extra.count + self.different.count

    def faults(self) -> list[str]:
        """Return a line with examples for each kind of difference."""
        kinds = (
            ("rows of the table that the topic lacks", self.missing),
            ("rows of the topic that the table lacks", self.extra),
            ("rows that differ", self.different),
        )
        return [f"{rows.count} {name}, such as {'; '.join(rows.examples)}" for name, rows in kinds if rows.count]


def compare(
    connection: Connection[Cursor],
    table: TableId,
    living: Mapping[tuple[Any, ...], tuple[Any, ...]],
    names: tuple[str, ...],
) -> Comparison:
    """Compare `table` with `living`, which maps values of the key to values of the row.

    `names` are the columns of those rows. No session may be writing to the table.
    """
    columns, key = _described(connection, table)
    result = Comparison()
    if living and names != tuple(column.name for column in columns):
        result.different.add(f"columns {list(names)} where the table has {[column.name for column in columns]}")
        return result
    key_at = [next(i for i, column in enumerate(columns) if column.name == name) for name in key]
    to_table = [(i, column.of_table) for i, column in enumerate(columns) if column.of_table]
    to_record = [(i, column.of_record) for i, column in enumerate(columns) if column.of_record]
    identities: set[tuple[Any, ...]] = set()
    with connection.cursor(SSCursor) as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT {', '.join(column.sql for column in columns)} FROM {table.sql}")
        while rows := cursor.fetchmany(5_000):
            for fetched in rows:
                row = list(fetched)
                for i, convert in to_table:
                    row[i] = None if row[i] is None else convert(row[i])
                identity = tuple(row[i] for i in key_at)
                identities.add(identity)
                of_topic = living.get(identity)
                if of_topic is None:
                    result.missing.add(f"key {identity}")
                    continue
                record = list(of_topic)
                for i, convert in to_record:
                    record[i] = None if record[i] is None else convert(record[i])
                if row != record:
                    result.different.add(f"key {identity}: {_difference(columns, row, record)}")
    result.rows = len(identities)
    for identity in living:
        if identity not in identities:
            result.extra.add(f"key {identity}")
    return result


def _difference(columns: list[_ComparedColumn], row: list[Any], record: list[Any]) -> str:
    parts = [
        f"{column.name} is {shorten(of_table)} in the table, {shorten(of_topic)} in the topic"
        for column, of_table, of_topic in zip(columns, row, record, strict=True)
        if of_table != of_topic
    ]
    return ", ".join(parts[:3])


def _described(connection: Connection[Cursor], table: TableId) -> tuple[list[_ComparedColumn], list[str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type, column_type, numeric_scale, datetime_precision"
            " FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            (table.database, table.table),
        )
        columns = [_compared(*described) for described in cursor.fetchall()]
        cursor.execute(
            "SELECT column_name FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s"
            " AND index_name = 'PRIMARY' ORDER BY seq_in_index",
            (table.database, table.table),
        )
        return columns, [name for (name,) in cursor.fetchall()]


def _compared(name: str, kind: str, full: str, scale: int | None, fraction: int | None) -> _ComparedColumn:
    column = quote(name)
    match kind:
        case "bigint" if "unsigned" in full:
            # bigint.unsigned.handling.mode=long: past 2**63 - 1 the number is negative.
            return _ComparedColumn(name, column, lambda value: value - 2**64 if value >= 2**63 else value)
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year":
            return _ComparedColumn(name, column)
        case "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "double":
            return _ComparedColumn(name, column)
        case "decimal":
            return _ComparedColumn(name, column, lambda value: _unscaled(value, scale or 0))
        case "date":
            return _ComparedColumn(name, f"DATEDIFF({column}, '1970-01-01')")
        case "datetime":
            micros = f"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {column})"
            return _ComparedColumn(name, micros, None if (fraction or 0) > 3 else lambda value: value // 1000)
        case "timestamp":
            digits = 20 + (fraction or 0) if fraction else 19
            return _ComparedColumn(name, f"CONCAT(LEFT(DATE_FORMAT({column}, '%Y-%m-%dT%H:%i:%s.%f'), {digits}), 'Z')")
        case "json":
            return _ComparedColumn(name, column, json.loads, json.loads)
        case "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob":
            return _ComparedColumn(name, column, lambda value: base64.b64encode(value).decode())
    raise ValueError(f"column {name}: {full} cannot be compared here")


def _unscaled(value: Decimal, scale: int) -> str:
    """Return the unscaled value as Java writes it: BigInteger.toByteArray, in base64."""
    number = int(value.scaleb(scale))
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()
