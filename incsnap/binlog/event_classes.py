"""The headers of many events as NumPy columns: class and place of each event, and the transactions that begin there.

The functions keep no state. `incsnap.binlog.transactions` makes segments of the columns.
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
from incsnap.binlog.segments import NO_TABLE, TRANSACTION, IdTable, TransactionArray
from incsnap.errors import BinlogError

#: Classes of events. OTHER: not part of a run. SILENT: without effect. MAP: TABLE_MAP. ROWS: a rows event. BEGIN: the
#: statement BEGIN. FINISH: XID or the statement COMMIT. GTID: the beginning of a transaction.
OTHER: Final = 0
SILENT: Final = 1
MAP: Final = 2
ROWS: Final = 3
BEGIN: Final = 4
FINISH: Final = 5
GTID: Final = 6

_CLASS = np.zeros(256, np.uint8)
_CLASS[[kinds.STOP, kinds.ROWS_QUERY, kinds.VIEW_CHANGE, *kinds.STATEMENT_DETAILS]] = SILENT
_CLASS[kinds.TABLE_MAP] = MAP
_CLASS[list(kinds.ROWS)] = ROWS
_CLASS[kinds.XID] = FINISH
_CLASS[[kinds.GTID, kinds.GTID_TAGGED]] = GTID

#: The table numbers of a dump that has brought no table map. This id is that of a rows event without rows, which old
#: servers write at the end of a statement.
NO_TABLE_IDS: Final = {0xFFFFFF: -1}

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


#: The 19-byte header, and the table id with which the body of a table map or rows event begins.
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
    """Consecutive events of one block."""

    data: Bytes  #: bytes of the block
    starts: Longs  #: first byte of each event in `data`
    ends: Longs  #: end of each event in `data`, without its checksum
    head: npt.NDArray[Any]  #: fields of each header and the table id, see `_HEADER`
    classes: npt.NDArray[np.uint8]  #: class of each event: OTHER, SILENT, MAP ...
    threads: Longs  #: connection id of each statement; -1 for other events
    #: positions in the binlog, for events of a compressed or XA transaction, which have none of their own; None:
    #: `head` has the positions
    at: Longs | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def between(self, begin: int, end: int) -> Events:
        """Return the events `begin` to `end`."""
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
        """Return the chosen events as one payload, and their offsets: first byte of each, and the end."""
        starts, ends, data = self.starts[chosen], self.ends[chosen], self.data
        payload = b"".join([data[begin:end] for begin, end in zip(starts.tolist(), ends.tolist(), strict=True)])
        return payload, np.concatenate((np.zeros(1, np.int64), np.cumsum(ends - starts)))

    def body(self, event: int) -> bytes:
        """Return the event's body, without header and checksum."""
        return self.data[self.starts[event] + kinds.HEADER : self.ends[event]]

    def table_ids(self, events: Longs) -> list[int]:
        """Return the table id of each of these map and rows events."""
        ids: list[int] = (self.head["table"][events] & _48_BITS).tolist()
        return ids

    def end_positions(self, before: int) -> Longs:
        """Return the end of each event in its file, in 64 bits. `before` is the first event's beginning.

        The header has only 32 bits, which wrap around. The events must follow each other in the file.
        """
        ends = np.concatenate((np.array([before & _32_BITS]), self.head["end"].astype(np.int64)))
        return before + np.cumsum(np.diff(ends) & _32_BITS)

    def positions(self, before: int) -> tuple[Longs, int]:
        """Return the first byte of each event in its file, and the place in the file after all events.

        The first event begins at `before`. Events without positions of their own do not move the place.
        """
        if self.at is not None:
            return self.at, before
        ends = self.end_positions(before)
        return ends - self.head["size"], int(ends[-1])


def classify(block: Block, checksum: int) -> Events:
    """Return the events of a block with their classes. `checksum`: bytes of the checksum after each event."""
    head = gather(block.data, _HEADER, block.starts)
    ends = block.ends - checksum
    classes = _CLASS[head["kind"]]
    threads = np.full(len(head), -1, np.int64)
    statements = np.flatnonzero(head["kind"] == kinds.QUERY)
    if len(statements):
        query = gather(block.data, _QUERY, block.starts[statements])
        last = ends[statements]
        length = last - block.starts[statements] - 33 - query["database"] - query["status"]
        # Read the text from its end: a gather from its beginning could leave the block.
        tail5 = gather(block.data, _TAIL, last - 5)["text"] & ((1 << 40) - 1)
        tail6 = gather(block.data, _TAIL, last - 6)["text"] & _48_BITS
        threads[statements] = query["thread"]
        classes[statements[(length == 5) & (tail5 == _BEGIN_TEXT)]] = BEGIN
        classes[statements[(length == 6) & (tail6 == _COMMIT_TEXT)]] = FINISH
    return Events(block.data, block.starts, ends, head, classes, threads)


def damaged(block: Block, events: Events) -> Longs:
    """Return the numbers of the events whose length or checksum (CRC32) is wrong.

    Checking costs 0.2 µs an event and 0.4 ns a byte. Without the check, a flipped bit on a disk would become a wrong
    row that nobody can recognize. The check ends at a FORMAT_DESCRIPTION event: that event says whether checksums
    follow.
    """
    formats = np.flatnonzero(events.head["kind"] == kinds.FORMAT_DESCRIPTION)
    end = int(formats[0]) if len(formats) else len(events)
    starts, ends, whole = events.starts[:end], events.ends[:end], block.ends[:end]
    bad = whole - starts != events.head["size"][:end]
    if len(whole) and whole[0] != ends[0]:
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        if isinstance(block.data, bytes):
            view, crc32 = memoryview(block.data), zlib.crc32
            checksums = [crc32(view[first:last]) for first, last in places]
        else:
            checksums = [checksum(block.data, first, last) for first, last in places]
        bad |= np.array(checksums, np.uint32) != gather(block.data, _CHECKSUM, ends)["crc"]
    return np.flatnonzero(bad)


def table_numbers(events: Events, known: dict[int, int], ids: IdTable, file: str) -> tuple[npt.NDArray[np.int32], int]:
    """Return the table number of each event (`IdTable.table`), and how many of the events have a valid number.

    An event has the number -1 if its table is excluded, or if the event is neither a table map nor a rows event.

    `known` maps each table id of earlier table maps to its table number. The function adds the ids of these events. A
    server may give a table id to another table later. The numbers are valid up to the first such table map: call the
    function again with the events from that map on. Raise BinlogError if a rows event has a table id of no table map;
    `file` is the binlog file in the message.
    """
    table = np.full(len(events), -1, np.int32)
    maps = np.flatnonzero(events.classes == MAP)
    count = len(events)
    if len(maps):
        data, decide = events.data, ids.table
        places = zip((events.starts[maps] + 25).tolist(), events.ends[maps].tolist(), strict=True)
        numbers = [decide(data[begin:end]) for begin, end in places]
        for nth, (table_id, number) in enumerate(zip(events.table_ids(maps), numbers, strict=True)):
            if known.get(table_id, number) != number and maps[nth] > 0:
                count = int(maps[nth])
                maps, numbers = maps[:nth], numbers[:nth]
                break
            known[table_id] = number
        table[maps] = numbers
    rows = np.flatnonzero(events.classes[:count] == ROWS)
    try:
        table[rows] = [known[table_id] for table_id in events.table_ids(rows)]
    except KeyError as unknown:
        raise BinlogError(f"{file}: rows of table id {unknown} without a table map") from None
    return table, count


def with_texts(run: Events, table: npt.NDArray[np.int32]) -> Longs:
    """Return the indexes of the events to keep: those of included tables, and the texts of their statements.

    A text is kept if an event of an included table follows before the next text. A text at the end of a run is kept
    too, because it is not known yet what follows. The function writes NO_TABLE into `table` for each kept text.
    """
    texts = np.flatnonzero(run.head["kind"] == kinds.ROWS_QUERY)
    kept = np.flatnonzero(table >= 0)
    if not len(texts):
        return kept
    ours = np.append(kept, len(run))
    followed = ours[np.searchsorted(ours, texts)] < np.append(texts[1:], len(run))
    followed[-1] |= not (run.classes[texts[-1] :] == MAP).any()
    table[texts[followed]] = NO_TABLE
    return np.sort(np.concatenate((kept, texts[followed])))


def read_gtids(events: Events, at: Longs, pos: Longs, ids: IdTable) -> TransactionArray:
    """Return the transactions that begin with the GTID events number `at`, without their threads.

    `pos` has the position of each GTID event in the file.
    """
    head = events.head[at]
    fields = gather(events.data, _GTID, events.starts[at])
    named = np.empty(len(at), TRANSACTION)
    named["number"], named["server"] = fields["number"], head["server"]
    named["thread"], named["pos"] = -1, pos
    immediate, original = fields["immediate"], fields["original"]
    both = (immediate >> np.uint64(55)) & np.uint64(1)
    ts_us = (np.where(both, original, immediate) & np.uint64(_55_BITS)).astype(np.int64)
    ts_us[events.ends[at] - events.starts[at] < kinds.HEADER + 49] = 0  # MySQL 5.7 writes no commit time
    source = np.full(len(at), -1, np.int32)
    for tagged in np.flatnonzero(head["kind"] == kinds.GTID_TAGGED).tolist():
        name, named["number"][tagged], ts_us[tagged] = kinds.read_tagged_gtid(events.body(int(at[tagged])))
        source[tagged] = ids.source(name)
    # A replica writes 0 if the source told no commit time. The header has the source's time in seconds.
    named["ts_us"] = np.where(ts_us > 0, ts_us, head["ts"].astype(np.int64) * 1_000_000)
    high, low = fields["high"], fields["low"]
    while len(unknown := np.flatnonzero(source < 0)):  # one round for each server uuid: there are few
        same = (high == high[unknown[0]]) & (low == low[unknown[0]]) & (source < 0)
        sid = uuid.UUID(int=int(high[unknown[0]]) << 64 | int(low[unknown[0]]))
        source[same] = ids.source((str(sid), ""))
    named["source"] = source
    return named
