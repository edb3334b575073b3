"""The slice: the part of a batch that one source task decodes. It has bytes and columns, no object per event."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from incsnap.binlog.protocol.control_events import HEADER, ROWS_QUERY, gtid_text, read_rows_query
from incsnap.binlog.protocol.frames import PAD, Longs, gather
from incsnap.binlog.segments import IS_ROWS, TRANSACTION
from incsnap.gtid import Source
from incsnap.tables import TableShape

_TABLE_ID = np.dtype("<u8")


#: A transaction in a slice: its first event there, the number of the file with its events, and of the file with its
#: GTID event. The two files differ if XA COMMIT stands in a later file than XA PREPARE. NumPy's `take` and `compress`
#: are ten times as fast on such an array as an index in brackets.
IN_SLICE = np.dtype([("event", "<i8"), ("file", "<i4"), ("gtid_file", "<i4"), ("transaction", TRANSACTION)])


@dataclass(frozen=True, slots=True, eq=False)
class SliceTransactions:
    """The transactions of a slice in the order of the log: the GTID, the binlog file and the first event of each."""

    records: npt.NDArray[np.void]  #: one element of `IN_SLICE` for each transaction
    sources: tuple[Source, ...]  #: GTID sources; `source` of a record is an index here
    files: tuple[str, ...]  #: binlog files; `file` and `gtid_file` of a record are indexes here

    def __len__(self) -> int:
        return len(self.records)

    def gtids(self) -> list[str]:
        """Return the GTID of each transaction as MySQL writes it."""
        named = [gtid_text(source, 0)[:-1] for source in self.sources]
        pairs = zip(self.column("source").tolist(), self.column("number").tolist(), strict=True)
        return [named[source] + str(number) for source, number in pairs]

    def column(self, name: str) -> Longs:
        """Return the field `name` of `TRANSACTION` for all transactions."""
        values: Longs = self.records["transaction"][name]
        return values

    @property
    def first_events(self) -> Longs:
        """Return the index of each transaction's first event in the slice."""
        events: Longs = self.records["event"]
        return events

    def between(self, begin: int, end: int, first_events: Longs) -> SliceTransactions:
        """Return the transactions `begin` to `end` for another slice, in which their first events are
        `first_events`."""
        records = self.records.take(np.arange(begin, end))
        records["event"] = first_events
        return SliceTransactions(records, self.sources, self.files)


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """A part of the stream for one task: whole events of included tables in binlog order.

    The events are table maps, rows events and, if asked for, statement texts. Each has its 19-byte header and its body,
    without checksum. The length in a header may still count a checksum. A slice that begins inside a transaction
    repeats the table maps in force at its beginning.
    """

    payload: bytes  #: event i is `payload[offsets[i]:offsets[i + 1]]`
    offsets: Longs  #: one more element than events
    #: position of each event in its file, in 64 bits; for an event of a compressed transaction that of the compressed
    #: event
    positions: Longs
    kinds: npt.NDArray[np.uint8]  #: event type of each event
    transactions: SliceTransactions  #: transactions with events in the slice
    #: Definitions of the tables whose maps have no column names, as of these rows. The planner adds them. If a
    #: definition has no columns, the table's rows are left out.
    definitions: tuple[TableShape, ...] = ()

    def __len__(self) -> int:
        """Return the number of events, table maps included."""
        return len(self.kinds)

    @property
    def is_rows(self) -> npt.NDArray[np.bool_]:
        """Return for each event whether it is a rows event."""
        rows: npt.NDArray[np.bool_] = IS_ROWS[self.kinds]
        return rows

    def with_definitions(self, definitions: tuple[TableShape, ...]) -> Slice:
        """Return a copy that carries `definitions`."""
        return replace(self, definitions=definitions) if definitions else self

    def table_ids(self) -> Longs:
        """Return each event's table id; -1 for a statement text.

        A rows event belongs to the last table map before it with the same id.
        """
        ids = gather(self.payload + PAD, _TABLE_ID, self.offsets[:-1] + HEADER)
        return np.where(self.kinds == ROWS_QUERY, -1, (ids & np.uint64((1 << 48) - 1)).astype(np.int64))

    def texts(self) -> list[bytes]:
        """Return the statement texts in the slice, if they were kept."""
        at = np.flatnonzero(self.kinds == ROWS_QUERY)
        places = zip((self.offsets[at] + HEADER).tolist(), self.offsets[at + 1].tolist(), strict=True)
        return [read_rows_query(self.payload[begin:end]) for begin, end in places]

    def text_of(self, events: Longs) -> Longs:
        """Return the index into `texts` for each of `events`; -1 if its statement's text is unknown."""
        at = np.flatnonzero(self.kinds == ROWS_QUERY)
        if not len(at):
            return np.full(len(events), -1)
        nth = np.searchsorted(at, events) - 1
        own = self.transaction_of(at)[np.maximum(nth, 0)] == self.transaction_of(events)
        return np.where(own, nth, -1)

    def place(self, event: int) -> str:
        """Return the binlog file and position of an event, for messages."""
        owner = max(int(self.transaction_of(np.array([event]))[0]), 0)
        file = self.transactions.files[self.transactions.records["file"][owner]]
        return f"{file}:{int(self.positions[event])}"

    def transaction_of(self, events: Longs) -> Longs:
        """Return the index into `transactions` for each of `events`."""
        return np.searchsorted(self.transactions.first_events, events, "right") - 1
