"""TABLE_MAP events: the shape of a table as the binlog tells it, beside every change, true at that moment.

With ``binlog_row_metadata=FULL`` the event holds everything that decoding needs, names and ENUM literals included, so
no query asks the server what a table looked like when an old event was written. With ``MINIMAL``, MySQL's default,
these, the key, and the character sets of ENUMs and SETs are missing; types, lengths, signs, NULLs, the character sets
of texts and the kinds of geometries are there. ``completed`` takes what is missing from a definition, which must agree
with all that is there.
https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Table__map__event.html
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from incsnap.binlog.protocol import table_metadata as metadata
from incsnap.binlog.protocol.byte_reader import ByteReader
from incsnap.binlog.protocol.wire_types import WireColumn, column_of, read_meta
from incsnap.errors import BinlogError
from incsnap.tables import Column, TableId, TableShape

TABLE_ID_BYTES = 6

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableMap:
    """``wire[i]`` is what the rows events that follow hold of ``shape.columns[i]``. ``named``: it tells its columns'
    names; else these are "", and so is what else MINIMAL metadata leaves out."""

    shape: TableShape
    wire: tuple[WireColumn, ...]
    named: bool = True


def parse_table_map(body: bytes, charsets: Mapping[int, str]) -> TableMap:
    """The map in an event's body, which is without its 19-byte header and its checksum.

    ``charsets``: collation id -> character set name (information_schema.collations). A column of a type that cannot
    be decoded is described by its name; only decoding its rows raises UnsupportedType. Raises BinlogError for a
    damaged event.
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
    described = [optional.describe(index) for index in range(count)]
    columns = tuple(
        column_of(each, nullable=bool(nulls[index >> 3] >> (index & 7) & 1), charsets=charsets)
        for index, each in enumerate(described)
    )
    for each, column in zip(described, columns, strict=True):
        if any(raw and not shown for raw, shown in zip(each.literals, column.values, strict=True)):
            _warn_of_literals(table, column)
    if any(index >= count for index in optional.key):
        raise BinlogError(f"{table}: the table map event names a key column that does not exist")
    return TableMap(TableShape(table, columns, optional.key), wire, named)


@lru_cache(maxsize=1_000)
def _warn_of_literals(table: TableId, column: Column) -> None:
    """Log that literals of an ENUM or SET are written as empty texts: once in a process."""
    _log.warning(
        "%s: column %s (%s) has literals that are no text of %s; records hold an empty text in their place, as"
        " information_schema does. ALTER TABLE can give the column literals that are text.",
        table,
        column.name,
        column.type.upper(),
        column.charset,
    )


def tells_names(description: bytes) -> bool:
    """Does a map tell its columns' names? ``description``: its bytes behind the table id. True where these are damaged:
    who decodes its rows says so."""
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
    """A map without names, with what ``definition`` tells of the same table. ``ValueError``, saying what differs, where
    that is not what the rows behind the map were written with."""
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
    """What MINIMAL metadata tells of it."""
    is_choice = column.type in ("enum", "set")
    return replace(column, name="", values=(), charset="" if is_choice else column.charset)


def _choice_bytes(column: Column) -> int:
    """How many bytes a value of an ENUM or SET with so many literals takes, as ``WireColumn.meta`` has it; 0 for other
    types."""
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


class TableMaps:
    """Table maps by their bytes behind the table id, which changes whenever the server opens the table anew: the
    same map stands before every statement's rows, and parsing it costs as much as decoding a hundred of them.
    """

    #: Reached only where tables change all the time; then all are forgotten and parsed again.
    _MOST = 10_000

    def __init__(self, charsets: Mapping[int, str]) -> None:
        self._charsets = charsets
        self._known: dict[bytes, TableMap] = {}

    def of(self, body: bytes) -> TableMap:
        """As parse_table_map, of any table id. Equal bytes give the same object."""
        description = body[TABLE_ID_BYTES:]
        table_map = self._known.get(description)
        if table_map is None:
            if len(self._known) >= self._MOST:
                self._known.clear()
            table_map = self._known[description] = parse_table_map(body, self._charsets)
        return table_map


def _table(reader: ByteReader) -> TableId:
    """The flags, which are skipped, and the table's name, which the reader's errors tell from then on."""
    reader.skip(2)
    table = TableId(_name(reader), _name(reader))
    reader.what = f"the table map event of {table}"
    return table


def _name(reader: ByteReader) -> str:
    name = reader.text(reader.integer(1))
    reader.skip(1)
    return name
