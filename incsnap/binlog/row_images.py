"""Rows events of one table into whole canonical columns: headers, scan, gather.

https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Rows__event.html. A body is: table
id (6 bytes), flags (2), in version 2 a length of extra data (2, counts itself) and the data, number of columns
(packed), bitmap of the columns present (one for each image kind), then row images up to the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incsnap.binlog.table_map import TableMap
from incsnap.columns.cursors import lenenc_integers, prefixed_lengths
from incsnap.columns.images import Field, Layout, scan
from incsnap.columns.packets import Packets, Positions
from incsnap.errors import BinlogError
from incsnap.tables import TableId
from incsnap.types.binlog_side import binlog_side

#: Event type numbers, versions 1 and 2.
WRITE, UPDATE, DELETE = (23, 30), (24, 31), (25, 32)
PARTIAL_UPDATE = 39
_VERSION_1 = (23, 24, 25)
_KNOWN = (*WRITE, *UPDATE, *DELETE)
_TABLE_ID_AND_FLAGS = 8


@dataclass(frozen=True, slots=True, eq=False)
class RowImages:
    """One element per row image, in binlog order. A WRITE gives its rows' after images, a DELETE its before images,
    an UPDATE before, after, before, after. ``event[i]`` is the index of image ``i``'s event among those given.
    """

    columns: list[pa.Array]
    event: NDArray[np.int32]


def decode_rows(
    payload: bytes | bytearray | memoryview | Packets,
    starts: Positions,
    ends: Positions,
    kinds: NDArray[np.uint8],
    table_map: TableMap,
) -> RowImages:
    """Decode the rows events of one table whose bodies are ``payload[starts[i]:ends[i]]``, of event type ``kinds[i]``.

    A body begins behind the 19-byte event header and ends before the checksum. To decode several tables of one
    payload, pass ``Packets.of(payload)``. Raises UnsupportedType naming table and column; BinlogError, naming the
    table, where an event is damaged or does not hold full images.
    """
    table = table_map.shape.id
    sides = [binlog_side(column, table) for column in table_map.shape.columns]
    fields = tuple(side.field(wire.meta) for side, wire in zip(sides, table_map.wire, strict=True))
    packets = Packets.of(payload)
    starts, ends = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    kinds = np.asarray(kinds, np.uint8)
    _refuse_unknown(kinds, table)
    _refuse(ends > packets.size, "ends behind the payload", table)
    first = _image_starts(packets, starts, ends, kinds, len(fields), table)
    images = scan(packets, first, ends, _layout(fields))
    if len(images.damaged):
        raise BinlogError(
            f"{table}: row images of event {images.damaged[0]} of this slice do not end where the event ends"
        )
    _refuse(np.isin(kinds, UPDATE) & (images.per_event % 2 == 1), "has a before image without an after image", table)
    columns = []
    for column, side, spans in zip(
        table_map.shape.columns, sides, _layout(fields).spans(packets, images.start), strict=True
    ):
        try:
            columns.append(side.decode(spans))
        except (ValueError, IndexError) as error:
            raise BinlogError(f"{table}: column {column.name} ({column.type}) holds a damaged value: {error}") from None
    return RowImages(columns, images.event)


@lru_cache(maxsize=1024)
def _layout(fields: tuple[Field, ...]) -> Layout:
    return Layout(fields)


def _image_starts(
    packets: Packets, starts: Positions, ends: Positions, kinds: NDArray[np.uint8], columns: int, table: TableId
) -> Positions:
    """Behind each event's own header, which is checked: number of columns, and that all of them are present."""
    at = starts + _TABLE_ID_AND_FLAGS
    version_2 = ~np.isin(kinds, _VERSION_1)
    at = at + prefixed_lengths(packets, at, 2) * version_2
    counts, at = lenenc_integers(packets, at)
    _refuse(counts != columns, f"does not have the {columns} columns of its table map", table)
    update = np.isin(kinds, UPDATE)
    complete = np.ones(len(at), np.bool_)
    size = (columns + 7) // 8
    for byte in range(size):
        full = 0xFF if byte < size - 1 or columns % 8 == 0 else (1 << columns % 8) - 1
        complete &= packets.data.take(at + byte, mode="clip") & full == full
        complete &= ~update | (packets.data.take(at + size + byte, mode="clip") & full == full)
    at = at + size + size * update
    _refuse(at > ends, "ends within its header", table)
    if not complete.all():
        raise BinlogError(
            f"{table}: the server writes row images without all columns",
            "Set binlog_row_image=FULL on the server, for all sessions; rows written before that cannot be decoded.",
        )
    return at


def _refuse_unknown(kinds: NDArray[np.uint8], table: TableId) -> None:
    if (kinds == PARTIAL_UPDATE).any():
        raise BinlogError(
            f"{table}: the server writes partial JSON updates",
            "Set binlog_row_value_options='' on the server, for all sessions.",
        )
    unknown = kinds[~np.isin(kinds, _KNOWN)]
    if len(unknown):
        raise BinlogError(f"{table}: event type {unknown[0]} is not a rows event")


def _refuse(bad: NDArray[np.bool_], what: str, table: TableId) -> None:
    if bad.any():
        raise BinlogError(f"{table}: rows event {int(np.flatnonzero(bad)[0])} of this slice {what}")
