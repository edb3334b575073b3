"""The decoder of rows events: it turns the events of one table into whole columns of values.

A body has, in this order: table id (6 bytes), flags (2 bytes), in version 2 extra data, number of columns (packed),
bitmaps, row images. The extra data has a length of 2 bytes before it, which includes these 2 bytes. The bitmaps have a
bit for each column that is present, one bitmap for each kind of image.
https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Rows__event.html

Every check looks at all events at once. If a check fails, `unreadable` decides about the bad events or values, and the
others are decoded without them.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incsnap.binlog.protocol.partial_updates import Patch, whole_update
from incsnap.binlog.protocol.table_map import TableMap
from incsnap.binlog.protocol.unreadable import (
    STRICT,
    VALUE_ERRORS,
    Failures,
    Where,
    decode_values,
    nth_of_slice,
    with_texts,
)
from incsnap.columns.cursors import lenenc_integers, prefixed_lengths
from incsnap.columns.images import Field, ImageLayout, Images, layout_of, scan
from incsnap.columns.packets import Mask, Packets, Positions
from incsnap.config.settings import FailureHandling
from incsnap.errors import BinlogError
from incsnap.tables import Column
from incsnap.types.column_type import ColumnType, describe
from incsnap.types.json.differences import patched

#: Event types, in versions 1 and 2.
WRITE, UPDATE, DELETE = (23, 30), (24, 31), (25, 32)
PARTIAL_UPDATE = 39
#: Event types whose bodies have no extra data.
VERSION_1 = (WRITE[0], UPDATE[0], DELETE[0])
#: Bytes of the table id and the flags.
TABLE_ID_AND_FLAGS = 8


def _types(*types: int) -> Mask:
    """Return a table for `types`: event type -> whether it is one of them.

    For few events it takes a tenth of `np.isin`.
    """
    among = np.zeros(256, np.bool_)
    among[list(types)] = True
    return among


_UPDATES = _types(*UPDATE, PARTIAL_UPDATE)
_VERSION_1 = _types(*VERSION_1)
_KNOWN = _types(*WRITE, *UPDATE, *DELETE, PARTIAL_UPDATE)
_SILENT = FailureHandling(processing="skip", converting="skip", inconsistent_schema="skip")
_FULL_IMAGES = "Set binlog_row_image=FULL on the server, for all sessions; rows written before that cannot be decoded."


@dataclass(frozen=True, slots=True, eq=False)
class RowImages:
    """The decoded row images of some rows events, in binlog order.

    A WRITE gives the after image of each row, a DELETE the before image, and an UPDATE before and after image in turn.
    """

    columns: list[Any]  #: values of each column, an Arrow array with one element for each image; None: not needed
    event: NDArray[np.int32]  #: index of each image's event among the given events
    kinds: NDArray[np.uint8]  #: type of each given event; a partial update has become an UPDATE
    dropped: Positions  #: indexes of the events that were left out, ascending; they have no images


def decode_rows(
    payload: bytes | bytearray | memoryview | Packets,
    starts: Positions,
    ends: Positions,
    kinds: NDArray[np.uint8],
    table_map: TableMap,
    needed: Set[int] | None = None,
    handling: FailureHandling = STRICT,
    where: Where = nth_of_slice,
) -> RowImages:
    """Decode rows events of one table. The body of event i is `payload[starts[i]:ends[i]]`, its type is `kinds[i]`.

    A body begins after the 19-byte header and ends before the checksum. To decode several tables of one payload, pass
    `Packets.of(payload)`. `needed` has the indexes of the columns to decode (None: all); the others are None in the
    result. `where(i)` returns the place of event i, for messages.

    Raise UnsupportedType, with table and column, for a type that cannot be decoded. Raise BinlogError, with place,
    table and column, as `handling` says. `processing` applies to damaged events and to events without full images.
    `inconsistent_schema` applies to events whose columns differ from the table map. `converting` applies to damaged
    values; a damaged value of a NOT NULL column is always an error.
    """
    table, shape = table_map.shape.id, table_map.shape
    types, fields = types_and_fields(table_map)
    kinds = np.asarray(kinds, np.uint8)
    failures = Failures(table, handling, where)
    packets, bodies, images, patches = _located(
        Packets.of(payload), starts, ends, kinds, fields, shape.columns, failures
    )
    event = bodies.event[images.event].astype(np.int32)
    columns: list[Any] = []
    spans = layout_of(fields).spans(packets, images.start)
    for index, (type_, lying) in enumerate(zip(types, spans, strict=True)):
        if needed is not None and index not in needed:
            columns.append(None)
            continue
        decoded = decode_values(type_.decode, type_.column, lying, event, failures)
        if patches:
            decoded = _patched(decoded, type_.column, index, event, patches, failures)
        columns.append(decoded)
    plain = np.where(kinds == PARTIAL_UPDATE, np.uint8(UPDATE[1]), kinds)
    return RowImages(columns, event, plain, np.array(sorted(failures.dropped), np.int64))


def count_rows(
    packets: Packets, starts: Positions, ends: Positions, kinds: NDArray[np.uint8], table_map: TableMap
) -> Positions:
    """Return the number of rows of each event, for the arguments of `decode_rows`. The map needs no column names.

    An update counts as one row, and an event that cannot be read has none. Raise UnsupportedType for an unknown type.
    """
    shape, failures = table_map.shape, Failures(table_map.shape.id, _SILENT, nth_of_slice)
    _, fields = types_and_fields(table_map)
    _, bodies, images, _ = _located(packets, starts, ends, kinds, fields, shape.columns, failures)
    rows = np.zeros(len(kinds), np.int64)
    rows[bodies.event] = images.per_event
    rows[_UPDATES[kinds]] //= 2
    return rows


def _located(
    packets: Packets,
    starts: Positions,
    ends: Positions,
    kinds: NDArray[np.uint8],
    fields: tuple[Field, ...],
    columns: Sequence[Column],
    failures: Failures,
) -> tuple[Packets, _Bodies, Images, dict[int, list[Patch]]]:
    """Return where the images of all readable events lie."""
    bodies = _Bodies(
        np.arange(len(kinds)), np.asarray(starts, np.int64), np.asarray(ends, np.int64), np.asarray(starts, np.int64)
    )
    bodies = _sound(packets, bodies, kinds, len(fields), failures)
    packets, bodies, patches = _whole_updates(packets, bodies, kinds, fields, columns, failures)
    bodies, images = _scanned(packets, bodies, kinds, layout_of(fields), failures)
    return packets, bodies, images, patches


def types_and_fields(table_map: TableMap) -> tuple[list[ColumnType], tuple[Field, ...]]:
    """Return for each column of the table its type, which decodes values, and the field by which a row image holds a
    value.

    Raise UnsupportedType for an unknown type.
    """
    types = [describe(column, table_map.shape.id) for column in table_map.shape.columns]
    return types, tuple(type_.field(wire.meta) for type_, wire in zip(types, table_map.wire, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Bodies:
    """The bodies of the events that are still good."""

    event: Positions  #: index of each event among the given events
    start: Positions  #: first byte of each body
    end: Positions  #: end of each body
    images: Positions  #: first byte of each body's row images

    def without(self, bad: Mask, failures: Failures, mode: str, what: str, hint: str | None = None) -> _Bodies:
        """Return the bodies that are not `bad`, and report the bad ones to `failures`."""
        if not bad.any():
            return self
        failures.drop(self.event[bad].tolist(), mode, what, hint)
        return _Bodies(self.event[~bad], self.start[~bad], self.end[~bad], self.images[~bad])


def _sound(packets: Packets, bodies: _Bodies, kinds: NDArray[np.uint8], columns: int, failures: Failures) -> _Bodies:
    """Return the bodies with a valid header: it has the table's number of columns, and all columns are present."""
    processing, inconsistent = failures.handling.processing, failures.handling.inconsistent_schema
    unknown = ~_KNOWN[kinds]
    if unknown.any():
        bodies = bodies.without(unknown, failures, processing, f"has the unknown event type {kinds[unknown][0]}")
    bodies = bodies.without(bodies.end > packets.size, failures, processing, "ends behind the payload")
    at = bodies.start + TABLE_ID_AND_FLAGS
    at = at + prefixed_lengths(packets, at, 2) * ~_VERSION_1[kinds[bodies.event]]
    counts, bitmaps = lenenc_integers(packets, at)
    update = _UPDATES[kinds[bodies.event]]
    every_column = ((1 << columns) - 1).to_bytes((columns + 7) // 8, "little")
    complete = _holds(packets, bitmaps, every_column)
    complete &= ~update | _holds(packets, bitmaps + len(every_column), every_column)
    images = bitmaps + len(every_column) * (1 + update)
    # If an event has several faults, the first one is reported.
    faults = (
        (bitmaps > bodies.end, processing, "ends within its header", None),
        (counts != columns, inconsistent, f"does not have the {columns} columns of its table map", None),
        (images > bodies.end, processing, "ends within its header", None),
        (~complete, processing, "holds row images without all columns", _FULL_IMAGES),
    )
    sound = np.ones(len(bodies.event), np.bool_)
    for faulty, mode, what, hint in faults:
        failures.drop(bodies.event[faulty & sound].tolist(), mode, what, hint)
        sound &= ~faulty
    return _Bodies(bodies.event[sound], bodies.start[sound], bodies.end[sound], images[sound])


def _holds(packets: Packets, at: Positions, bits: bytes) -> Mask:
    """Return whether all of `bits` are set in each of the bitmaps that begin at `at`."""
    all_set = np.ones(len(at), np.bool_)
    for nth, byte in enumerate(bits):
        all_set &= packets.data.take(at + nth, mode="clip") & byte == byte
    return all_set


def _whole_updates(
    packets: Packets,
    bodies: _Bodies,
    kinds: NDArray[np.uint8],
    fields: tuple[Field, ...],
    columns: Sequence[Column],
    failures: Failures,
) -> tuple[Packets, _Bodies, dict[int, list[Patch]]]:
    """Append each partial update to the payload as an ordinary update.

    Return the new payload, the bodies, and the patches by event.
    """
    partial = np.flatnonzero(kinds[bodies.event] == PARTIAL_UPDATE)
    if not len(partial):
        return packets, bodies, {}
    documents = [index for index, column in enumerate(columns) if column.type == "json"]
    start, end, images = bodies.start.copy(), bodies.end.copy(), bodies.images.copy()
    bad = np.zeros(len(start), np.bool_)
    rewritten, patches, at = [], {}, packets.size
    for place in partial.tolist():
        body = packets.data[start[place] : end[place]].tobytes()
        header = int(images[place] - start[place])
        try:
            whole, patches[int(bodies.event[place])] = whole_update(body, header, layout_of(fields), documents)
        except BinlogError as error:
            bad[place] = True
            one = _Bodies(*(column[place : place + 1] for column in (bodies.event, start, end, images)))
            one.without(np.ones(1, np.bool_), failures, failures.handling.processing, f"is damaged: {error.message}")
            continue
        rewritten.append(whole)
        start[place], end[place], images[place] = at, at + len(whole), at + header
        at += len(whole)
    packets = Packets.of(b"".join([packets.data[: packets.size].data, *rewritten]))
    return packets, _Bodies(bodies.event[~bad], start[~bad], end[~bad], images[~bad]), patches


def _scanned(
    packets: Packets, bodies: _Bodies, kinds: NDArray[np.uint8], layout: ImageLayout, failures: Failures
) -> tuple[_Bodies, Images]:
    processing = failures.handling.processing
    if not layout.fields:  # images without bytes: a walk over them would never end
        bodies = bodies.without(bodies.images < bodies.end, failures, processing, "holds rows of no columns")
    images = scan(packets, bodies.images, bodies.end, layout)
    damaged = np.zeros(len(bodies.event), np.bool_)
    damaged[images.damaged] = True
    odd = _UPDATES[kinds[bodies.event]] & (images.per_event % 2 == 1) & ~damaged
    if damaged.any() or odd.any():
        bodies = bodies.without(damaged, failures, processing, "has row images that do not end where the event ends")
        bodies = bodies.without(odd[~damaged], failures, processing, "has a before image without an after image")
        images = scan(packets, bodies.images, bodies.end, layout)
    return bodies, images


def _patched(
    decoded: Any,
    column: Column,
    index: int,
    event: NDArray[np.int32],
    patches: dict[int, list[Patch]],
    failures: Failures,
) -> Any:
    """Return the column with the documents that partial updates changed."""
    texts: dict[int, str | None] = {}
    bad: list[tuple[int, Exception]] = []
    for number, column_patches in patches.items():
        first = int(np.searchsorted(event, number))
        for patch in column_patches:
            if patch.column != index:
                continue
            try:
                texts[first + patch.image] = patched(patch.document, patch.differences)
            except VALUE_ERRORS as error:
                texts[first + patch.image] = None
                bad.append((number, error))
    if bad:
        failures.null(column, bad)
    return with_texts(decoded, texts) if texts else decoded
