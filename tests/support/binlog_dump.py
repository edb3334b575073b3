"""A small replication connection for tests: raw events from a position on. Only event headers are interpreted.

It is independent of the product's tail, so a test of decoding depends on neither.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from incsnap.binlog.protocol.row_images import RowImages, decode_rows
from incsnap.binlog.protocol.table_map import TableMap, parse_table_map
from incsnap.mysql.driver_internals import read_packet, send_command
from incsnap.tables import TableId

_HEADER = 19
_TABLE_MAP = 19
_NON_BLOCKING = 1
_COM_BINLOG_DUMP = 0x12
_EOF = 0xFE
_ROWS = (23, 24, 25, 30, 31, 32, 39)


@dataclass(frozen=True, slots=True)
class RawEvent:
    kind: int
    body: bytes


def charsets_of(connection: Any) -> dict[int, str]:
    """Return the character set of each collation, by the collation's number."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, character_set_name FROM information_schema.collations")
        return {int(id_): str(name) for id_, name in cursor.fetchall()}


def events_since(connection: Any, position: tuple[str, int], server_id: int = 4_000_000_001) -> Iterator[RawEvent]:
    """Yield all events from `position` to the present end. The connection cannot be used afterwards."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@global.binlog_checksum")
        checksum = 4 if cursor.fetchone()[0] == "CRC32" else 0
        cursor.execute("SET @source_binlog_checksum = @@global.binlog_checksum, @source_heartbeat_period = 0")
    file, offset = position
    body = struct.pack("<IHI", offset, _NON_BLOCKING, server_id) + file.encode()
    send_command(connection, _COM_BINLOG_DUMP, body)
    while True:
        packet = read_packet(connection)
        if packet[0] == _EOF:
            return
        event = packet[1:]
        yield RawEvent(event[4], event[_HEADER : len(event) - checksum])


@dataclass(frozen=True, slots=True)
class TableEvents:
    """The rows events of one table in one payload, the input of `decode_rows`."""

    table_map: TableMap
    payload: bytes
    starts: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]
    kinds: np.ndarray[Any, Any]

    def decode(self) -> RowImages:
        return decode_rows(self.payload, self.starts, self.ends, self.kinds, self.table_map)


def table_events(events: Iterator[RawEvent], table: TableId, charsets: dict[int, str]) -> TableEvents:
    """Collect the rows events of `table`, at least one. The table's definition must not change within the events."""
    collected = rows_events(events, table, charsets)
    assert collected is not None, f"no rows event of {table}"
    return collected


def rows_events(events: Iterator[RawEvent], table: TableId, charsets: dict[int, str]) -> TableEvents | None:
    """Collect the rows events of `table`, or return None if there are none. See `table_events`."""
    maps: dict[int, TableMap] = {}
    payload, starts, kinds = bytearray(), [], []
    last = None
    for event in events:
        if event.kind == _TABLE_MAP:
            table_map = parse_table_map(event.body, charsets)
            maps[int.from_bytes(event.body[:6], "little")] = table_map
        elif event.kind in _ROWS:
            table_map = maps[int.from_bytes(event.body[:6], "little")]
            if table_map.shape.id == table:
                last = table_map
                payload += b"\xee" * _HEADER
                starts.append((len(payload), len(payload) + len(event.body)))
                kinds.append(event.kind)
                payload += event.body
    if last is None:
        return None
    bounds = np.array(starts, np.int64)
    return TableEvents(last, bytes(payload), bounds[:, 0].copy(), bounds[:, 1].copy(), np.array(kinds, np.uint8))
