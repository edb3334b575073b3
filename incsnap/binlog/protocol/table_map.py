"""TABLE_MAP events: the shape of a table as the binlog tells it, beside every change, true at that moment.

With ``binlog_row_metadata=FULL`` the event holds everything that decoding needs, names and ENUM literals included, so
no query asks the server what a table looked like when an old event was written.
https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Table__map__event.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from incsnap.binlog.protocol import table_metadata as metadata
from incsnap.binlog.protocol.byte_reader import ByteReader
from incsnap.binlog.protocol.wire_types import WireColumn, column_of, read_meta
from incsnap.errors import BinlogError
from incsnap.tables import TableId, TableShape

TABLE_ID_BYTES = 6


@dataclass(frozen=True, slots=True)
class TableMap:
    """``wire[i]`` is what the rows events that follow hold of ``shape.columns[i]``."""

    shape: TableShape
    wire: tuple[WireColumn, ...]


def parse_table_map(body: bytes, charsets: Mapping[int, str]) -> TableMap:
    """The map in an event's body, which is without its 19-byte header and its checksum.

    ``charsets``: collation id -> character set name (information_schema.collations). A column of a type that cannot
    be decoded is described by its name; only decoding its rows raises UnsupportedType. Raises BinlogError for a
    damaged event and where the server writes MINIMAL metadata.
    """
    reader = ByteReader(bytes(body), "a table map event")
    reader.skip(TABLE_ID_BYTES + 2)
    table = TableId(_name(reader), _name(reader))
    reader.what = f"the table map event of {table}"
    count = reader.packed()
    codes = reader.take(count)
    meta = ByteReader(reader.take(reader.packed()), reader.what)
    wire = tuple(read_meta(code, meta) for code in codes)
    nulls = reader.take((count + 7) // 8)
    found = metadata.parse(reader, wire)
    if count and len(found.names) != count:
        raise BinlogError(
            f"{table}: the server's table map events hold no column names",
            "Set binlog_row_metadata=FULL on the server; events written before that cannot be decoded.",
        )
    columns = tuple(
        column_of(found.describe(index), nullable=bool(nulls[index >> 3] >> (index & 7) & 1), charsets=charsets)
        for index in range(count)
    )
    if any(index >= count for index in found.key):
        raise BinlogError(f"{table}: the table map event names a key column that does not exist")
    return TableMap(TableShape(table, columns, found.key), wire)


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
        found = self._known.get(description)
        if found is None:
            if len(self._known) >= self._MOST:
                self._known.clear()
            found = self._known[description] = parse_table_map(body, self._charsets)
        return found


def _name(reader: ByteReader) -> str:
    name = reader.text(reader.integer(1))
    reader.skip(1)
    return name
