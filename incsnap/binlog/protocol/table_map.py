"""The reader of TABLE_MAP events: the shape of a table at the moment of the change that follows.

With `binlog_row_metadata=FULL` the event has everything that decoding needs, including column names and ENUM literals.
So the server is never asked how a table looked when an old event was written. With `MINIMAL`, MySQL's default, the
event lacks names, literals, the key and the character sets of ENUMs and SETs. `completed` takes them from a definition,
which must agree with everything that the event has.
https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Table__map__event.html
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from incsnap.binlog.protocol import table_metadata as metadata
from incsnap.binlog.protocol.byte_reader import ByteReader
from incsnap.binlog.protocol.wire_types import WireColumn, read_meta
from incsnap.errors import BinlogError
from incsnap.tables import Column, TableId, TableShape

#: Bytes of the table id, with which the body begins.
TABLE_ID_BYTES = 6

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableMap:
    """The shape of a table, and the encoding of its rows."""

    shape: TableShape  #: table, columns and key
    wire: tuple[WireColumn, ...]  #: encoding of each column in the rows events that follow
    named: bool = True  #: False: column names and everything else that MINIMAL metadata lacks are empty in `shape`


def parse_table_map(body: bytes, charsets: Mapping[int, str]) -> TableMap:
    """Read the body of a table map event, without its 19-byte header and its checksum.

    `charsets`: collation number -> character set (information_schema.collations). A column whose type cannot be decoded
    is described by its name: only decoding its rows raises UnsupportedType. Raise BinlogError if the event is damaged.
    """
    reader = ByteReader(bytes(body), "a table map event")
    reader.skip(TABLE_ID_BYTES)
    table = _table(reader)
    count = reader.length_encoded()
    codes = reader.take(count)
    meta = ByteReader(reader.take(reader.length_encoded()), reader.what)
    wire = tuple(read_meta(code, meta) for code in codes)
    nulls = reader.take((count + 7) // 8)
    optional = metadata.parse(reader, wire)
    named = len(optional.names) == count
    if optional.names and not named:
        raise BinlogError(f"{reader.what} is damaged: it names {len(optional.names)} of {count} columns")
    columns = tuple(
        optional.column(index, nullable=bool(nulls[index >> 3] >> (index & 7) & 1), charsets=charsets)
        for index in range(count)
    )
    for index, literals in optional.literals.items():
        if any(raw and not shown for raw, shown in zip(literals, columns[index].values, strict=True)):
            _warn_of_literals(table, columns[index])
    if any(index >= count for index in optional.key):
        raise BinlogError(f"{table}: the table map event names a key column that does not exist")
    return TableMap(TableShape(table, columns, optional.key), wire, named)


@lru_cache(maxsize=1_000)
def _warn_of_literals(table: TableId, column: Column) -> None:
    """Log, once in a process, that literals of an ENUM or SET are written as empty texts."""
    _log.warning(
        "%s: column %s (%s) has literals that are no text of %s; records hold an empty text in their place, as"
        " information_schema does. ALTER TABLE can give the column literals that are text.",
        table,
        column.name,
        column.type.upper(),
        column.charset,
    )


def tells_names(description: bytes) -> bool:
    """Whether a map has column names. `description`: its body after the table id.

    Return True for a damaged map: decoding its rows will report the error.
    """
    try:
        reader = ByteReader(description, "a table map event")
        _table(reader)
        count = reader.length_encoded()
        reader.skip(count)
        reader.skip(reader.length_encoded())
        reader.skip((count + 7) // 8)
        return metadata.has_names(reader) or not count
    except BinlogError:
        return True


def completed(table_map: TableMap, definition: TableShape) -> TableMap:
    """Return the map, which has no column names, with the names and the rest of `definition`.

    Raise ValueError, with the difference, if the rows after the map were not written by this definition.
    """
    mapped, defined = table_map.shape.columns, definition.columns
    if len(mapped) != len(defined):
        raise ValueError(
            f"its rows have {len(mapped)} columns, the table as the server describes it has {len(defined)}"
        )
    for number, (left, right, wire) in enumerate(zip(mapped, defined, table_map.wire, strict=True), 1):
        if left != _without_missing(right) or _choice_bytes(right) not in (0, wire.meta):
            raise ValueError(
                f"column {number} of its rows is {_described(left)}, and {right.name} as the server describes it is"
                f" {_described(right)}"
            )
    return replace(table_map, shape=definition, named=True)


def _without_missing(column: Column) -> Column:
    """Return the column with only what MINIMAL metadata has."""
    is_choice = column.type in ("enum", "set")
    return replace(column, name="", values=(), charset="" if is_choice else column.charset)


def _choice_bytes(column: Column) -> int:
    """Return how many bytes a value of this ENUM or SET takes, as in `WireColumn.meta`; 0 for another type."""
    count = len(column.values)
    if column.type == "enum":
        return 1 if count < 256 else 2
    if column.type == "set":
        return (count + 7) // 8 if count <= 32 else 8
    return 0


def _described(column: Column) -> str:
    text = f"{column.type}{' unsigned' if column.unsigned else ''}{'' if column.nullable else ' NOT NULL'}"
    sizes = ("length", "precision", "scale", "fraction", "charset")
    return ", ".join((text, *(f"{name} {getattr(column, name)}" for name in sizes if getattr(column, name))))


def table_maps(charsets: Mapping[int, str]) -> Callable[[bytes], TableMap]:
    """Return a function that parses the body of a table map event, given without its table id, and caches the last
    10,000 results.

    `charsets` maps a collation's number to the name of its character set. The cache saves much: the same table map
    comes before the rows of every statement, and parsing one costs as much as decoding a hundred rows. The table id is
    left out of the cache's key, because the server gives a new id whenever it opens the table again. Equal bytes give
    the same object. The returned function raises BinlogError for a damaged event.
    """
    return lru_cache(maxsize=10_000)(lambda described: parse_table_map(bytes(TABLE_ID_BYTES) + described, charsets))


def _table(reader: ByteReader) -> TableId:
    """Skip the flags and return the table's name. Errors of the reader have the name from then on."""
    reader.skip(2)
    table = TableId(_name(reader), _name(reader))
    reader.what = f"the table map event of {table}"
    return table


def _name(reader: ByteReader) -> str:
    name = reader.text(reader.integer(1))
    reader.skip(1)
    return name
