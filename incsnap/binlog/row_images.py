"""Rows events of one table into whole canonical columns: headers, scan, gather.

https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Rows__event.html. A body is: table
id (6 bytes), flags (2), in version 2 a length of extra data (2, counts itself) and the data, number of columns
(packed), bitmap of the columns present (one for each image kind), then row images up to the end.

Every check looks at all events at once. Only where one fails is it asked what to do about the events or values to
blame (``failures``), and the rest goes on without them.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incsnap.binlog.failures import STRICT, VALUE_ERRORS, Failures, Where, decode_values, nth_of_slice, with_texts
from incsnap.binlog.partial_updates import Patch, whole_update
from incsnap.binlog.table_map import TableMap
from incsnap.columns.cursors import lenenc_integers, prefixed_lengths
from incsnap.columns.images import Field, Images, Layout, scan
from incsnap.columns.packets import Mask, Packets, Positions
from incsnap.config.settings import FailureHandling
from incsnap.errors import BinlogError
from incsnap.tables import Column
from incsnap.types.binlog_side import binlog_side
from incsnap.types.json_diff import patched

#: Event type numbers, versions 1 and 2.
WRITE, UPDATE, DELETE = (23, 30), (24, 31), (25, 32)
PARTIAL_UPDATE = 39
_UPDATES = (*UPDATE, PARTIAL_UPDATE)
_VERSION_1 = (23, 24, 25)
_KNOWN = (*WRITE, *UPDATE, *DELETE, PARTIAL_UPDATE)
_TABLE_ID_AND_FLAGS = 8


@dataclass(frozen=True, slots=True, eq=False)
class RowImages:
    """One element per row image, in binlog order. A WRITE gives its rows' after images, a DELETE its before images,
    an UPDATE before, after, before, after. ``event[i]`` is the index of image ``i``'s event among those given.

    ``kinds``: of each event given, a partial update as the plain UPDATE it was made. ``dropped``: indexes, ascending,
    of the events that were left out; they have no images.
    """

    columns: list[Any]
    event: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    dropped: Positions


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
    """Decode the rows events of one table whose bodies are ``payload[starts[i]:ends[i]]``, of event type ``kinds[i]``.

    A body begins behind the 19-byte event header and ends before the checksum. To decode several tables of one
    payload, pass ``Packets.of(payload)``. ``needed``: indexes of the columns to decode (None: all); None stands for
    each of the others. ``where(i)`` is the place of event ``i``, for messages.

    Raises UnsupportedType naming table and column. BinlogError, naming place, table and column, as ``handling`` says:
    ``processing`` where an event is damaged or does not hold full images, ``inconsistent_schema`` where it has not the
    columns of its table map, ``converting`` where a value is damaged (and always, where its column is NOT NULL).
    """
    table, shape = table_map.shape.id, table_map.shape
    sides = [binlog_side(column, table) for column in shape.columns]
    fields = tuple(side.field(wire.meta) for side, wire in zip(sides, table_map.wire, strict=True))
    kinds = np.asarray(kinds, np.uint8)
    failures = Failures(table, handling, where)
    packets = Packets.of(payload)
    bodies = _Bodies(
        np.arange(len(kinds)), np.asarray(starts, np.int64), np.asarray(ends, np.int64), np.asarray(starts, np.int64)
    )
    bodies = _sound(packets, bodies, kinds, len(fields), failures)
    packets, bodies, patches = _whole_updates(packets, bodies, kinds, fields, shape.columns, failures)
    bodies, images = _scanned(packets, bodies, kinds, _layout(fields), failures)
    event = bodies.event[images.event].astype(np.int32)
    columns: list[Any] = []
    spans = _layout(fields).spans(packets, images.start)
    for index, (column, side, lying) in enumerate(zip(shape.columns, sides, spans, strict=True)):
        if needed is not None and index not in needed:
            columns.append(None)
            continue
        decoded = decode_values(side.decode, column, lying, event, failures)
        if patches:
            decoded = _patched(decoded, column, index, event, patches, failures)
        columns.append(decoded)
    plain = np.where(kinds == PARTIAL_UPDATE, np.uint8(UPDATE[1]), kinds)
    return RowImages(columns, event, plain, np.array(sorted(failures.dropped), np.int64))


@lru_cache(maxsize=1024)
def _layout(fields: tuple[Field, ...]) -> Layout:
    return Layout(fields)


@dataclass(frozen=True, slots=True, eq=False)
class _Bodies:
    """Events still good: index among those given, where the body begins and ends, where its images begin."""

    event: Positions
    start: Positions
    end: Positions
    images: Positions

    def without(self, bad: Mask, failures: Failures, mode: str, what: str, hint: str | None = None) -> _Bodies:
        if not bad.any():
            return self
        failures.drop(self.event[bad].tolist(), mode, what, hint)
        return _Bodies(self.event[~bad], self.start[~bad], self.end[~bad], self.images[~bad])


def _sound(packets: Packets, bodies: _Bodies, kinds: NDArray[np.uint8], columns: int, failures: Failures) -> _Bodies:
    """The events whose own header is as it must be: number of columns, and that all of them are present."""
    processing = failures.handling.processing
    unknown = ~np.isin(kinds, _KNOWN)
    if unknown.any():
        bodies = bodies.without(unknown, failures, processing, f"has the unknown event type {kinds[unknown][0]}")
    bodies = bodies.without(bodies.end > packets.size, failures, processing, "ends behind the payload")
    at = bodies.start + _TABLE_ID_AND_FLAGS
    version_2 = ~np.isin(kinds[bodies.event], _VERSION_1)
    at = at + prefixed_lengths(packets, at, 2) * version_2
    counts, at = lenenc_integers(packets, at)
    update = np.isin(kinds[bodies.event], _UPDATES)
    size = (columns + 7) // 8
    images = at + size + size * update
    complete = np.ones(len(at), np.bool_)
    for byte in range(size):
        full = 0xFF if byte < size - 1 or columns % 8 == 0 else (1 << columns % 8) - 1
        complete &= packets.data.take(at + byte, mode="clip") & full == full
        complete &= ~update | (packets.data.take(at + size + byte, mode="clip") & full == full)
    checked = _Bodies(bodies.event, bodies.start, bodies.end, images)
    cut, misfit = at > bodies.end, counts != columns
    if not (cut.any() or misfit.any() or (images > bodies.end).any() or not complete.all()):
        return checked
    headed = "ends within its header"
    good = checked.without(cut, failures, processing, headed)
    misfit, complete = misfit[~cut], complete[~cut]
    inconsistent = failures.handling.inconsistent_schema
    good = good.without(misfit, failures, inconsistent, f"does not have the {columns} columns of its table map")
    complete = complete[~misfit]
    short = good.images > good.end
    good = good.without(short, failures, processing, headed)
    return good.without(
        ~complete[~short],
        failures,
        processing,
        "holds row images without all columns",
        "Set binlog_row_image=FULL on the server, for all sessions; rows written before that cannot be decoded.",
    )


def _whole_updates(
    packets: Packets,
    bodies: _Bodies,
    kinds: NDArray[np.uint8],
    fields: Sequence[Field],
    columns: Sequence[Column],
    failures: Failures,
) -> tuple[Packets, _Bodies, dict[int, list[Patch]]]:
    """Partial updates rewritten behind the end of the payload; the patches by event."""
    partial = np.flatnonzero(kinds[bodies.event] == PARTIAL_UPDATE)
    if not len(partial):
        return packets, bodies, {}
    is_json = [column.type == "json" for column in columns]
    start, end, images = bodies.start.copy(), bodies.end.copy(), bodies.images.copy()
    bad = np.zeros(len(start), np.bool_)
    rewritten, patches, at = [], {}, packets.size
    for place in partial.tolist():
        body = packets.data[start[place] : end[place]].tobytes()
        header = int(images[place] - start[place])
        try:
            whole, patches[int(bodies.event[place])] = whole_update(body, header, fields, is_json)
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
    packets: Packets, bodies: _Bodies, kinds: NDArray[np.uint8], layout: Layout, failures: Failures
) -> tuple[_Bodies, Images]:
    processing = failures.handling.processing
    if not layout.fields:  # images of no bytes: a walk over them would never end
        bodies = bodies.without(bodies.images < bodies.end, failures, processing, "holds rows of no columns")
    images = scan(packets, bodies.images, bodies.end, layout)
    damaged = np.zeros(len(bodies.event), np.bool_)
    damaged[images.damaged] = True
    odd = np.isin(kinds[bodies.event], _UPDATES) & (images.per_event % 2 == 1) & ~damaged
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
    """The column with the documents that partial updates changed."""
    texts: dict[int, str | None] = {}
    bad: list[tuple[int, Exception]] = []
    for number, found in patches.items():
        first = int(np.searchsorted(event, number))
        for patch in found:
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
