"""A slice: a range of the stream as it travels to a task. Bytes and columns, no object per event or transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from incsnap.binlog.protocol.control_events import HEADER, ROWS_QUERY, gtid_text, read_rows_query
from incsnap.binlog.protocol.frames import PAD, Longs, gather
from incsnap.binlog.segments import IS_ROWS, TRANSACTION
from incsnap.gtid import Source
from incsnap.tables import TableShape

_TABLE_ID = np.dtype("<u8")


#: A transaction with events in a slice: the first of them, and the number of the file that they are in. NumPy takes
#: some elements of such an array ten times as fast by ``take`` and ``compress`` as by an index in brackets.
IN_SLICE = np.dtype([("event", "<i8"), ("file", "<i4"), ("transaction", TRANSACTION)])


class SliceTransaction(NamedTuple):
    """A transaction with events in a slice. ``event``: the first of them; ``ts_us``: original commit, µs; ``thread``:
    None where the log does not say; ``pos``: 64-bit position of its GTID event."""

    event: int
    gtid: str
    server_id: int
    thread: int | None
    ts_us: int
    file: str
    pos: int


@dataclass(frozen=True, slots=True, eq=False)
class SliceTransactions:
    """The transactions of a slice, in the order of the log; iterating makes ``SliceTransaction`` of them.

    ``records`` has an element for each, which names its source and its file by their places in ``sources`` and
    ``files``.
    """

    records: npt.NDArray[np.void]
    sources: tuple[Source, ...]
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[SliceTransaction]:
        for gtid, (event, file, (_, _, server, thread, ts_us, pos)) in zip(
            self.gtids(), self.records.tolist(), strict=True
        ):
            yield SliceTransaction(event, gtid, server, None if thread < 0 else thread, ts_us, self.files[file], pos)

    def gtids(self) -> list[str]:
        """The transactions' names as MySQL writes them."""
        named = [gtid_text(source, 0)[:-1] for source in self.sources]
        pairs = zip(self.column("source").tolist(), self.column("number").tolist(), strict=True)
        return [named[source] + str(number) for source, number in pairs]

    def column(self, name: str) -> Longs:
        """A field of ``TRANSACTION``, of all of them."""
        values: Longs = self.records["transaction"][name]
        return values

    @property
    def first_events(self) -> Longs:
        """The first event of each transaction in the slice."""
        events: Longs = self.records["event"]
        return events

    def between(self, begin: int, end: int, first_events: Longs) -> SliceTransactions:
        """Those from ``begin`` to ``end``, for a slice in which their first events are these."""
        records = self.records.take(np.arange(begin, end))
        records["event"] = first_events
        return SliceTransactions(records, self.sources, self.files)


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Whole TABLE_MAP and rows events of included tables in binlog order: 19-byte header and body, no checksum.

    Event i is ``payload[offsets[i]:offsets[i + 1]]`` and begins at ``positions[i]`` (64 bits) of its file; events of a
    compressed transaction have the position of the event around them. A slice that begins inside a transaction begins
    with the table maps still in force. The length in a header may count a checksum that is not there.

    ``definitions``: of the tables whose maps in here tell no names, as they were when these rows were written; given by
    the planner. One without columns means that the table's rows without names are left out.
    """

    payload: bytes
    offsets: Longs
    positions: Longs
    kinds: npt.NDArray[np.uint8]
    transactions: SliceTransactions
    definitions: tuple[TableShape, ...] = ()

    def __len__(self) -> int:
        """Events, table maps included."""
        return len(self.kinds)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Slice)
            and self.payload == other.payload
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.positions, other.positions)
            and list(self.transactions) == list(other.transactions)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_rows(self) -> npt.NDArray[np.bool_]:
        """True for rows events, False for table maps and texts of statements."""
        rows: npt.NDArray[np.bool_] = IS_ROWS[self.kinds]
        return rows

    def defined(self, definitions: tuple[TableShape, ...]) -> Slice:
        """The same with these."""
        return replace(self, definitions=definitions) if definitions else self

    def table_ids(self) -> Longs:
        """Each event's table id: a rows event belongs to the last map before it of the same id. -1 for a text."""
        ids = gather(self.payload + PAD, _TABLE_ID, self.offsets[:-1] + HEADER)
        return np.where(self.kinds == ROWS_QUERY, -1, (ids & np.uint64((1 << 48) - 1)).astype(np.int64))

    def texts(self) -> list[bytes]:
        """The statements in here, where they are kept."""
        at = np.flatnonzero(self.kinds == ROWS_QUERY)
        places = zip((self.offsets[at] + HEADER).tolist(), self.offsets[at + 1].tolist(), strict=True)
        return [read_rows_query(self.payload[begin:end]) for begin, end in places]

    def text_of(self, events: Longs) -> Longs:
        """The index into ``texts`` of each of those events; -1: none is known."""
        at = np.flatnonzero(self.kinds == ROWS_QUERY)
        if not len(at):
            return np.full(len(events), -1)
        nth = np.searchsorted(at, events) - 1
        own = self.transaction_of(at)[np.maximum(nth, 0)] == self.transaction_of(events)
        return np.where(own, nth, -1)

    def place(self, event: int) -> str:
        """Binlog file and position of an event, for messages."""
        owner = max(int(self.transaction_of(np.array([event]))[0]), 0)
        file = self.transactions.files[self.transactions.records["file"][owner]]
        return f"{file}:{int(self.positions[event])}"

    def transaction_of(self, events: Longs) -> Longs:
        """The index into ``transactions`` of each of those events."""
        return np.searchsorted(self.transactions.first_events, events, "right") - 1
