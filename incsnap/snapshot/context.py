"""The state of incremental snapshots at the end of one batch: what the offset carries, nothing else is remembered.

Plain frozen values. The engine makes the next context of this one; ``partitions(start, end)`` and what the sink must do
are read off it (``Scan.chunk``, ``released``, ``held_tables``). ``offset`` writes it as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.keys import Key
from incsnap.snapshot.notifications import Notification
from incsnap.snapshot.questions import NextBoundary
from incsnap.snapshot.throttle import NOT_THROTTLED, Throttle
from incsnap.snapshot.window import Chunk, ChunkTime, Window
from incsnap.tables import TableId


@dataclass(frozen=True, slots=True)
class Request:
    """A data collection that waits in the queue, and the id of the signal that asked for it."""

    signal: str
    collection: DataCollection

    @property
    def table(self) -> TableId:
        return self.collection.table


@dataclass(frozen=True, slots=True)
class Range:
    """Keys that must be read again: ``lower < key <= upper``, cut for ``rows`` rows.

    ``attempt``, ``faults``, ``lost`` as in ``Window``. ``not_before_ms`` is the back-off; ``split``: halve it before it
    is read.
    """

    lower: Key | None
    upper: Key
    rows: int
    attempt: int = 0
    faults: int = 0
    lost: int = 0
    not_before_ms: int = 0
    split: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """A table that is being read.

    ``columns``: its ordering columns, () until they are known; ``index`` holds them, and what is called greater, above
    and maximum here is so in their order, in which those of ``descending`` run down. ``fingerprint``: see ``keys``.
    ``described`` is False when the columns must be asked for (again): at the beginning and after a DDL.
    ``maximum``: the greatest key when the table was begun; rows above it come by the log. ``boundary``: all ranges up
    to it have been planned; None at the table's beginning, equal to ``maximum`` at its end.
    ``chunk_rows``: the present chunk size. ``again``: ranges to read again. ``quarantine``: ranges given up.
    ``asked``: the batch that was the first to ask the question about the table that has no answer yet; 0 for none.
    ``times``: of chunks of one size, or of two; ``doublings``: how often the time of a SELECT ran out, each time it is
    doubled for the chunks behind.
    ``rows_read``: rows of released windows, before de-duplication. ``failures``: batches in a row in which chunks
    failed and none succeeded. ``attempt``, ``not_before_ms``: questions about the table that failed in a row, back-off.
    ``begun_again``: how often the table was begun from its beginning once more. ``lost_readings``: readings of its
    chunks that came to no end, but for those that a restart cut short once.
    """

    number: int
    request: Request
    chunk_rows: int
    columns: tuple[str, ...] = ()
    index: str = "PRIMARY"
    fingerprint: str = ""
    described: bool = False
    maximum: Key | None = None
    boundary: Key | None = None
    again: tuple[Range, ...] = ()
    quarantine: tuple[Range, ...] = ()
    rows_read: int = 0
    failures: int = 0
    attempt: int = 0
    not_before_ms: int = 0
    descending: tuple[str, ...] = ()
    begun_again: int = 0
    lost_readings: int = 0
    times: tuple[ChunkTime, ...] = ()
    doublings: int = 0
    asked: int = 0

    @property
    def table(self) -> TableId:
        return self.request.table

    @property
    def wholly_planned(self) -> bool:
        """True if every key up to the maximum has been planned at least once (ranges may have to be read again)."""
        return self.maximum is not None and self.boundary == self.maximum

    def is_whole(self, span: Range | Window) -> bool:
        """Whether it has all keys of the table."""
        return span.lower is None and span.upper == self.maximum

    def chunk(self, window: Window) -> Chunk:
        """What the reader of a window selects."""
        condition = self.request.collection.condition
        return Chunk(self.table, self.columns, window.lower, window.upper, condition, self.index, self.descending)

    def border(self, after: Key | None, upto: Key, rows: int, *, beside: bool = False) -> NextBoundary:
        """What is asked for the end of a chunk of so many rows."""
        return NextBoundary(self.table, self.columns, self.index, after, upto, rows, beside, self.descending)


@dataclass(frozen=True, slots=True)
class Release:
    """Parts of a window that a batch sends: from ``window.sent`` up to, and without, ``upto``."""

    window: Window
    upto: int

    @property
    def bytes(self) -> int:
        """What its keys and values take, about, before any row is discarded."""
        return (self.upto - self.window.sent) * self.window.part_bytes

    @property
    def is_last(self) -> bool:
        """Is nothing of the window left after it?"""
        return self.window.reading is not None and self.upto >= self.window.reading.parts


@dataclass(frozen=True, slots=True)
class SnapshotContext:
    """What is asked, read and held at the end of a batch.

    ``queue``: tables that wait. ``scans``: tables being read, in order. ``planned``: windows that this batch
    has planned; they are read beside the stream.
    ``held``: windows of earlier batches that are still held after this one, whether they have been read or not.
    ``released``: what this batch sends; a window of which parts are left is also held.
    ``dropped``: ids of windows given up in this batch (their files can go). ``notifications``: sent with this batch.
    ``recent``: ids of the last execute signals, to recognise a repeated one. ``scans_begun`` numbers the scans.
    ``paused_by``: the signal that asked for the pause. ``throttle``: what holds reading back.
    """

    queue: tuple[Request, ...] = ()
    scans: tuple[Scan, ...] = ()
    planned: tuple[Window, ...] = ()
    held: tuple[Window, ...] = ()
    released: tuple[Release, ...] = ()
    dropped: tuple[str, ...] = ()
    notifications: tuple[Notification, ...] = ()
    paused: bool = False
    recent: tuple[str, ...] = ()
    scans_begun: int = 0
    paused_by: str = ""
    throttle: Throttle = NOT_THROTTLED

    @property
    def in_flight(self) -> tuple[Window, ...]:
        """Windows whose rows are (being) read and not yet sent."""
        return self.held + self.planned

    def settled(self) -> SnapshotContext:
        """The same without what belongs to its batch alone."""
        return replace(self, planned=(), held=self.in_flight, released=(), dropped=(), notifications=())

    def tables_written_to(self) -> frozenset[TableId]:
        """The tables of windows in flight, and of those that this batch sends parts of."""
        return frozenset(window.table for window in (*self.in_flight, *(each.window for each in self.released)))

    def unfinished(self) -> tuple[TableId, ...]:
        """Return the tables that are read or wait; one that two signals ask for comes twice."""
        return (*(scan.table for scan in self.scans), *(request.table for request in self.queue))

    @property
    def unread(self) -> tuple[Window, ...]:
        """Windows whose chunks are being read, or wait for it."""
        return tuple(window for window in self.in_flight if window.reading is None)

    @property
    def active(self) -> bool:
        """True if anything is asked for and not finished."""
        return bool(self.queue or self.scans)

    def wholly_released(self) -> list[Scan]:
        """Tables that end with the next batch: every range was planned, nothing is in flight or must be read again."""
        awaited = {window.scan for window in self.in_flight}
        return [scan for scan in self.scans if scan.wholly_planned and not scan.again and scan.number not in awaited]

    def scans_by_number(self) -> dict[int, Scan]:
        return {scan.number: scan for scan in self.scans}

    def held_tables(self) -> frozenset[TableId]:
        """Tables whose keys the sink must write down for this batch: a window of an earlier batch outlives it.

        Also of windows that are not read yet: their SELECT may see less than this batch brings. Not those of
        ``planned``: their SELECT waits for this batch's events, so these overtake nothing.
        """
        return frozenset(window.table for window in self.held)
