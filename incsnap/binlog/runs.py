"""The headers of many events as columns: what kind each is, where it lies, whose transaction begins there.

Only NumPy and no state; ``transactions.py`` puts the columns together.
"""

from __future__ import annotations

import uuid
import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol.frames import Block, Longs, gather
from incsnap.binlog.protocol.long_event import Bytes, checksum
from incsnap.binlog.segments import NO_TABLE, TRANSACTION, Names, TransactionArray

#: Classes of events. OTHER ends a run and is looked at by itself.
OTHER: Final = 0
SILENT: Final = 1
MAP: Final = 2
ROWS: Final = 3
BEGIN: Final = 4
FINISH: Final = 5
NAME: Final = 6

_CLASS = np.zeros(256, np.uint8)
_CLASS[[kinds.STOP, kinds.ROWS_QUERY, kinds.VIEW_CHANGE, *kinds.STATEMENT_DETAILS]] = SILENT
_CLASS[kinds.TABLE_MAP] = MAP
_CLASS[list(kinds.ROWS)] = ROWS
_CLASS[kinds.XID] = FINISH
_CLASS[[kinds.GTID, kinds.GTID_TAGGED]] = NAME

_48_BITS: Final = (1 << 48) - 1
_55_BITS: Final = (1 << 55) - 1
_32_BITS: Final = (1 << 32) - 1


def _record(width: int, **fields: tuple[int, str]) -> np.dtype[Any]:
    return np.dtype(
        {
            "names": list(fields),
            "offsets": [offset for offset, _ in fields.values()],
            "formats": [form for _, form in fields.values()],
            "itemsize": width,
        }
    )


#: The 19-byte header, and the table id that table maps and rows events begin with.
_HEADER = _record(
    27, ts=(0, "<u4"), kind=(4, "u1"), server=(5, "<u4"), size=(9, "<u4"), end=(13, "<u4"), table=(19, "<u8")
)
_QUERY = _record(32, thread=(19, "<u4"), database=(27, "u1"), status=(30, "<u2"))
_GTID = _record(76, high=(20, ">u8"), low=(28, ">u8"), number=(36, "<i8"), immediate=(61, "<u8"), original=(68, "<u8"))
_TAIL = _record(8, text=(0, "<u8"))
_CHECKSUM = _record(4, crc=(0, "<u4"))
_BEGIN_TEXT: Final = int.from_bytes(b"BEGIN", "little")
_COMMIT_TEXT: Final = int.from_bytes(b"COMMIT", "little")


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events of one block. ``ends`` are without checksums, ``threads`` is -1 where an event is no statement; ``at`` is
    where they stood in the binlog, if they come from elsewhere now."""

    data: Bytes
    starts: Longs
    ends: Longs
    head: npt.NDArray[Any]
    classes: npt.NDArray[np.uint8]
    threads: Longs
    at: Longs | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def between(self, begin: int, end: int) -> Events:
        return Events(
            self.data,
            self.starts[begin:end],
            self.ends[begin:end],
            self.head[begin:end],
            self.classes[begin:end],
            self.threads[begin:end],
            None if self.at is None else self.at[begin:end],
        )

    def joined(self, chosen: Longs) -> tuple[bytes, Longs]:
        """Those events one behind the other, and where each begins; last, where they end."""
        starts, ends, data = self.starts[chosen], self.ends[chosen], self.data
        payload = b"".join([data[begin:end] for begin, end in zip(starts.tolist(), ends.tolist(), strict=True)])
        return payload, np.concatenate((np.zeros(1, np.int64), np.cumsum(ends - starts)))

    def body(self, event: int) -> bytes:
        return self.data[self.starts[event] + kinds.HEADER : self.ends[event]]

    def body_view(self, event: int) -> memoryview:
        """The same without a copy."""
        return memoryview(self.data)[self.starts[event] + kinds.HEADER : self.ends[event]]

    def table_ids(self, events: Longs) -> list[int]:
        ids: list[int] = (self.head["table"][events] & _48_BITS).tolist()
        return ids

    def end_positions(self, before: int) -> Longs:
        """Where each event ends in its file, in 64 bits. The header has 32, which wrap; events follow each other."""
        ends = np.concatenate((np.array([before & _32_BITS]), self.head["end"].astype(np.int64)))
        return before + np.cumsum(np.diff(ends) & _32_BITS)

    def places(self, before: int, fixed: tuple[int, int] | None) -> tuple[Longs, Longs]:
        """Where each event begins and ends in the file: within ``fixed`` where they have no positions of their own."""
        if self.at is not None:
            return self.at, self.at
        if fixed is not None:
            return np.full(len(self), fixed[0]), np.full(len(self), fixed[1])
        ends = self.end_positions(before)
        return ends - self.head["size"], ends


def classify(block: Block, checksum: int) -> Events:
    head = gather(block.data, _HEADER, block.starts)
    ends = block.ends - checksum
    classes = _CLASS[head["kind"]]
    threads = np.full(len(head), -1, np.int64)
    statements = np.flatnonzero(head["kind"] == kinds.QUERY)
    if len(statements):
        query = gather(block.data, _QUERY, block.starts[statements])
        last = ends[statements]
        length = last - block.starts[statements] - 33 - query["database"] - query["status"]
        # Looked at from the end, so that a short statement's gather never leaves the block's beginning.
        tail5 = gather(block.data, _TAIL, last - 5)["text"] & ((1 << 40) - 1)
        tail6 = gather(block.data, _TAIL, last - 6)["text"] & _48_BITS
        threads[statements] = query["thread"]
        classes[statements[(length == 5) & (tail5 == _BEGIN_TEXT)]] = BEGIN
        classes[statements[(length == 6) & (tail6 == _COMMIT_TEXT)]] = FINISH
    return Events(block.data, block.starts, ends, head, classes, threads)


def damaged(block: Block, events: Events, begin: int) -> Longs:
    """The events from ``begin`` on whose length or checksum (CRC32 behind them, where the server writes any) is wrong.

    A checksum costs 0.2 µs an event and 0.4 ns a byte. Without it one flipped bit of a disk would be a wrong row that
    nothing could tell from a right one. They are looked at up to an event that describes the format, since behind that
    there may be no checksums; whether it has one it tells itself.
    """
    formats = begin + np.flatnonzero(events.head["kind"][begin:] == kinds.FORMAT_DESCRIPTION)
    end = int(formats[0]) if len(formats) else len(events)
    starts, ends, whole = events.starts[begin:end], events.ends[begin:end], block.ends[begin:end]
    bad = whole - starts != events.head["size"][begin:end]
    if len(whole) and whole[0] != ends[0]:
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        if isinstance(block.data, bytes):
            view, crc32 = memoryview(block.data), zlib.crc32
            checksums = [crc32(view[first:last]) for first, last in places]
        else:
            checksums = [checksum(block.data, first, last) for first, last in places]
        bad |= np.array(checksums, np.uint32) != gather(block.data, _CHECKSUM, ends)["crc"]
    return begin + np.flatnonzero(bad)


def with_texts(run: Events, table: npt.NDArray[np.int32]) -> Longs:
    """The events to be kept: those of our tables, and the texts of statements that a table of ours follows before the
    next one. Of one at the end of a run nobody knows yet: kept. ``table`` is told which texts."""
    texts = np.flatnonzero(run.head["kind"] == kinds.ROWS_QUERY)
    kept = np.flatnonzero(table >= 0)
    if not len(texts):
        return kept
    ours = np.append(kept, len(run))
    followed = ours[np.searchsorted(ours, texts)] < np.append(texts[1:], len(run))
    followed[-1] |= not (run.classes[texts[-1] :] == MAP).any()
    table[texts[followed]] = NO_TABLE
    return np.sort(np.concatenate((kept, texts[followed])))


def read_names(events: Events, at: Longs, pos: Longs, names: Names) -> TransactionArray:
    """The transactions that the GTID events at those places begin, each of which stands at ``pos`` of the file; their
    threads are not known yet."""
    head = events.head[at]
    fields = gather(events.data, _GTID, events.starts[at])
    named = np.empty(len(at), TRANSACTION)
    named["number"], named["server"] = fields["number"], head["server"]
    named["thread"], named["pos"] = -1, pos
    immediate, original = fields["immediate"], fields["original"]
    both = (immediate >> np.uint64(55)) & np.uint64(1)
    ts_us = (np.where(both, original, immediate) & np.uint64(_55_BITS)).astype(np.int64)
    dated = events.ends[at] - events.starts[at] >= kinds.HEADER + 49
    named["ts_us"] = np.where(dated, ts_us, head["ts"].astype(np.int64) * 1_000_000)
    source = np.full(len(at), -1, np.int32)
    for tagged in np.flatnonzero(head["kind"] == kinds.GTID_TAGGED).tolist():
        gtid = kinds.read_tagged_gtid(events.body(int(at[tagged])))
        source[tagged] = names.source(gtid.source)
        named["number"][tagged], named["ts_us"][tagged] = gtid.number, gtid.ts_us
    high, low = fields["high"], fields["low"]
    while len(unknown := np.flatnonzero(source < 0)):  # once per server uuid, of which there are few
        same = (high == high[unknown[0]]) & (low == low[unknown[0]]) & (source < 0)
        sid = uuid.UUID(int=int(high[unknown[0]]) << 64 | int(low[unknown[0]]))
        source[same] = names.source((str(sid), ""))
    named["source"] = source
    return named
