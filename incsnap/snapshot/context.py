"""The state of incremental snapshots at the end of a batch. The offset contains it, and nothing else is remembered.

All values are frozen. The engine makes the next context from this one. Spark's `partitions(start, end)` and the sink's
work follow from it (`Scan.chunk`, `released`, `held_tables`). `offset` writes it as JSON.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from itertools import chain, count

from incsnap.snapshot.commands import ChosenRows, DataCollection
from incsnap.snapshot.keys import Key
from incsnap.snapshot.notifications import Notification
from incsnap.snapshot.questions import NextBoundary
from incsnap.snapshot.throttle import NOT_THROTTLED, Throttle
from incsnap.snapshot.window import Chunk, ChunkTime, Window
from incsnap.tables import TableId

#: The choice of a signal that chooses no rows.
ALL_ROWS = ChosenRows()
#: Ending of the identity of a signal whose id an unfinished signal has already.
_ENDING = "\x1f#"


def identity_of(id_: str, taken: Container[str]) -> str:
    """Return an identity for the signal with this id that is none of `taken`, the identities of unfinished signals.

    >>> identity_of("ad-hoc", []), identity_of("ad-hoc", ["ad-hoc"]).endswith("#2")
    ('ad-hoc', True)
    """
    names = chain((id_,), (f"{id_}{_ENDING}{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def id_of(identity: str) -> str:
    """Return the id of the signal with this identity, as notifications and logs show it."""
    id_, ending, number = identity.rpartition(_ENDING)
    return id_ if ending and number.isdecimal() else identity


@dataclass(frozen=True, slots=True)
class Request:
    """A data collection that waits in the queue."""

    #: identity of the signal that asked for the table: its id, with an ending if another signal has this id (`id_of`)
    signal: str
    collection: DataCollection  #: table, with its condition and surrogate key

    @property
    def table(self) -> TableId:
        """The table."""
        return self.collection.table


@dataclass(frozen=True, slots=True)
class Range:
    """A range of keys, `lower < key <= upper`, that must be read again."""

    lower: Key | None  #: key before the range; None: the range begins at the table's first row
    upper: Key  #: last key of the range
    rows: int  #: number of rows that the range was planned for
    attempt: int = 0  #: earlier attempts that failed; this and the next two are as in `Window`
    faults: int = 0  #: those failures that count against the range
    lost: int = 0  #: those failures that gave no result
    not_before_ms: int = 0  #: earliest time of the next attempt, in ms since 1970; 0: at once
    split: bool = False  #: whether to halve the range before it is read


@dataclass(frozen=True, slots=True)
class Scan:
    """A table that is being read.

    "First", "last", "up to" and "above" follow the order of its index, in which the columns of `descending` run down.
    """

    number: int  #: number of the scan, from 1; never used twice
    request: Request  #: table, and the signal that asked for it
    chunk_rows: int  #: number of rows that the next chunk is planned for
    columns: tuple[str, ...] = ()  #: ordering columns; () until they are known
    index: str = "PRIMARY"  #: index that begins with `columns`; "" if none does
    fingerprint: str = ""  #: text of `keys.table_fingerprint`; "" until the table is described
    described: bool = False  #: whether the columns are known; False at the beginning and after a DDL
    #: Last key when the table was begun; None until it is known. Rows above it come by the binlog.
    maximum: Key | None = None
    #: End of the ranges that were planned without a gap; None at the table's beginning, `maximum` at its end.
    boundary: Key | None = None
    again: tuple[Range, ...] = ()  #: ranges to read again
    quarantine: tuple[Range, ...] = ()  #: ranges that were given up
    rows_read: int = 0  #: rows of windows that are completely released, also those that events have discarded
    failures: int = 0  #: batches in a row in which chunks failed and none succeeded
    attempt: int = 0  #: questions about the table that failed in a row
    not_before_ms: int = 0  #: earliest time of the next question or chunk, in ms since 1970; 0: at once
    descending: tuple[str, ...] = ()  #: those of `columns` that run from their greatest value down
    begun_again: int = 0  #: how often the table was begun from its beginning once more
    #: attempts that gave no result; a chunk's first attempt that a restart cut short does not count
    lost_readings: int = 0
    #: duration of chunks of one size, or of two, the newest last (`sizing.measured_times`)
    times: tuple[ChunkTime, ...] = ()
    #: how often the time limit of the next chunks' SELECT is doubled: once more after each chunk that reaches the limit
    doublings: int = 0
    asked: int = 0  #: batch that was the first to ask the question that has no answer yet; 0 for none
    is_identified: bool = True  #: whether columns tell the table's rows apart
    #: for a table whose rows nothing tells apart: batches in a row whose events have dropped windows of the table
    disturbances: int = 0
    first: Key | None = None  #: as in `questions.KeyOrder`
    last: Key | None = None  #: as in `questions.KeyOrder`
    #: file with the list of keys that the signal chooses; "" for none. Keys and boundaries of this scan are places in
    #: that list: `maximum` is the number of keys.
    keys: str = ""
    absent: int = 0  #: keys of the list that the table did not have, in windows that are completely released

    @property
    def chosen(self) -> ChosenRows:
        """The rows that the signal chooses."""
        return self.request.collection.chosen or ALL_ROWS

    @property
    def table(self) -> TableId:
        """The table."""
        return self.request.table

    @property
    def wholly_planned(self) -> bool:
        """True if every key up to the maximum has been planned at least once.

        Ranges may still have to be read again.
        """
        return self.maximum is not None and self.boundary == self.maximum

    def is_whole(self, span: Range | Window) -> bool:
        """Whether `span` has all keys of the table."""
        return span.lower is None and span.upper == self.maximum

    def chunk(self, window: Window) -> Chunk:
        """Return the chunk that the reader of `window` selects."""
        return Chunk(
            self.table,
            self.columns,
            window.lower,
            window.upper,
            self.request.collection.condition,
            self.index,
            self.descending,
            self.first,
            self.last,
            self.chosen.every,
            self.chosen.seed,
            self.keys,
            self.chosen.deletes,
        )

    def place_after(self, after: Key | None, upto: Key, rows: int) -> Key | None:
        """Return the place `rows` keys behind `after` in the list of keys; None if that is behind `upto`."""
        place = rows + (int(after[0] or 0) if after is not None else 0)
        return (str(place),) if place <= int(upto[0] or 0) else None

    def border(self, after: Key | None, upto: Key, rows: int, *, beside: bool = False) -> NextBoundary:
        """Return the question for the end of a chunk of `rows` rows after key `after`, at most `upto`.

        `beside`: as in `NextBoundary`. A list of keys needs no question (`place_after`).
        """
        return NextBoundary(
            self.table, self.columns, self.index, after, upto, rows, beside, self.descending, self.first, self.last
        )


@dataclass(frozen=True, slots=True)
class Release:
    """Parts of a window that a batch sends, from `window.sent` up to `upto`, without `upto`."""

    window: Window  #: window as it was before this batch
    upto: int  #: how many parts of the window are sent by the end of this batch, in this batch and earlier ones

    @property
    def bytes(self) -> int:
        """The approximate bytes of these parts' keys and values, before any row is discarded."""
        return (self.upto - self.window.sent) * self.window.part_bytes

    @property
    def is_last(self) -> bool:
        """True if no part of the window is left after this release."""
        return self.window.result is not None and self.upto >= self.window.result.parts


@dataclass(frozen=True, slots=True)
class SnapshotContext:
    """The state of all snapshots at the end of a batch."""

    queue: tuple[Request, ...] = ()  #: tables that wait
    scans: tuple[Scan, ...] = ()  #: tables that are being read, in order
    planned: tuple[Window, ...] = ()  #: windows that this batch has planned; their chunks are read beside the stream
    held: tuple[Window, ...] = ()  #: windows of earlier batches that are still held after this one, read or not
    #: parts of windows that this batch sends; a window with parts left is also in `held`
    released: tuple[Release, ...] = ()
    dropped: tuple[str, ...] = ()  #: ids of windows that were dropped in this batch; their files can be deleted
    notifications: tuple[Notification, ...] = ()  #: notifications that are sent with this batch
    paused: bool = False  #: whether no chunk is planned, because a signal asked for a pause
    recent: tuple[str, ...] = ()  #: ids of the last execute signals, to recognise a repeated one
    scans_begun: int = 0  #: number of the newest scan
    paused_by: str = ""  #: id of the signal that asked for the pause; "" for none
    throttle: Throttle = NOT_THROTTLED  #: limits on reading that signals have set

    @property
    def in_flight(self) -> tuple[Window, ...]:
        """The windows whose rows are not completely sent."""
        return self.held + self.planned

    def settled(self) -> SnapshotContext:
        """Return the state with which the engine begins the next batch.

        Its planned windows are held now. What belongs to one batch alone is left out: releases, dropped windows and
        notifications.
        """
        return replace(self, planned=(), held=self.in_flight, released=(), dropped=(), notifications=())

    def tables_written_to(self) -> frozenset[TableId]:
        """Return the tables whose topics need a partition count in the batch's offset, because of their windows.

        These are the tables of windows that are in flight or that this batch sends parts of.
        """
        return frozenset(window.table for window in (*self.in_flight, *(each.window for each in self.released)))

    def unfinished(self) -> tuple[TableId, ...]:
        """Return the tables that are read or wait. A table that two signals ask for comes twice."""
        return (*(scan.table for scan in self.scans), *(request.table for request in self.queue))

    @property
    def unread(self) -> tuple[Window, ...]:
        """The windows whose chunks are being read or wait for a reader."""
        return tuple(window for window in self.in_flight if window.result is None)

    @property
    def active(self) -> bool:
        """True if a table is being read or waits."""
        return bool(self.queue or self.scans)

    def wholly_released(self) -> list[Scan]:
        """Return the tables that end with the next batch.

        All ranges of such a table are planned, and none of them is in flight or must be read again.
        """
        awaited = {window.scan for window in self.in_flight}
        return [scan for scan in self.scans if scan.wholly_planned and not scan.again and scan.number not in awaited]

    def scans_by_number(self) -> dict[int, Scan]:
        """Return the scans, by number."""
        return {scan.number: scan for scan in self.scans}

    def held_tables(self) -> frozenset[TableId]:
        """Return the tables whose changed keys the sink must write down for this batch: those of windows in `held`.

        These windows are sent after this batch, and its events discard rows of theirs. That includes windows that are
        not read yet, because their SELECT may not see what this batch brings. It does not include windows of `planned`:
        their SELECT waits for this batch's events.
        """
        return frozenset(window.table for window in self.held)
