"""The next context while it is being made: mutable, lives for one call of the engine, never saved.

The steps of the engine say *what* happens; here is *how* it changes the state, each change in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from incsnap.errors import shorten
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.context import Range, Release, Request, Scan, SnapshotContext
from incsnap.snapshot.notifications import FEW_NAMED, Notification, comma_list
from incsnap.snapshot.throttle import ThrottleLimits
from incsnap.snapshot.window import Window
from incsnap.tables import TableId

#: Characters of what was wrong with a chunk or a table: it may end with what to do.
REASON = 400
#: Times that a table is begun before it ends with CHANGED_TOO_OFTEN. A migration changes a key once or twice; a table
#: that is swapped every few minutes would be read for ever.
MAX_BEGINNINGS = 10


class Warned(NamedTuple):
    """A warning for the log, and the id of the signal that it is about."""

    text: str
    signal: str


class NextContext:
    """Begins as ``context`` without what belonged to its batch only; ``finished()`` is the next context.
    ``configured``: the limits that the settings have."""

    def __init__(
        self, context: SnapshotContext, batch: int, now_ms: int, configured: Mapping[str, int] | None = None
    ) -> None:
        self.batch = batch
        self.now_ms = now_ms
        self.queue: list[Request] = list(context.queue)
        self.scans: dict[int, Scan] = {scan.number: scan for scan in context.scans}
        self.scans_begun = context.scans_begun
        #: Windows of earlier batches, neither wholly released nor dropped so far.
        self.held: list[Window] = []
        self.planned: list[Window] = []
        self.released: list[Release] = []
        self.dropped: list[str] = []
        self.notifications: list[Notification] = []
        self.warned: list[Warned] = []
        #: Borders found among further rows, of chunks planned in this batch.
        self.cuts = 0
        self.paused, self.paused_by = context.paused, context.paused_by
        self.limits = ThrottleLimits(context.throttle, configured or {})
        self.recent: list[str] = list(context.recent)
        self._ended_signals: list[str] = []
        #: What ``unfinished`` tells, kept while tables end one by one: each tells which are left, of thousands.
        self._unfinished: dict[str, dict[TableId, Request]] | None = None

    # -- notifications, warnings, requests

    def notify(self, signal: str, kind: str, **fields: str) -> None:
        self.notifications.append(Notification(signal, kind, self.now_ms, tuple(fields.items())))

    def warn(self, text: str, signal: str) -> None:
        """``signal``: what the warning is about."""
        self.warned.append(Warned(text, signal))

    def unfinished(self) -> dict[str, dict[TableId, Request]]:
        """Signal id -> its tables that are read or wait, in order. A signal has a table once."""
        if self._unfinished is None:
            self._unfinished = {}
            for request in (*(scan.request for scan in self.scans.values()), *self.queue):
                self._unfinished.setdefault(request.signal, {})[request.table] = request
        return self._unfinished

    def ask(self, requests: Iterable[Request]) -> None:
        """The requests wait from now on."""
        self.queue += requests
        self._unfinished = None

    # -- windows

    def plan(self, scan: Scan, span: Range) -> None:
        """A window of this batch over it."""
        self.limits.planned(span.rows, self.now_ms)
        self.planned.append(
            Window(
                id=f"{self.batch}-{len(self.planned)}",
                scan=scan.number,
                table=scan.table,
                signal=scan.request.signal,
                lower=span.lower,
                upper=span.upper,
                rows=span.rows,
                batch=self.batch,
                attempt=span.attempt,
                faults=span.faults,
                lost=span.lost,
                planned_ms=self.now_ms,
                doublings=scan.doublings,
            )
        )

    def read(self, window: Window, rows: int) -> None:
        """So many rows were read of it. Fewer than it was cut for give their time back, unless a condition has hidden
        them: those were read all the same."""
        missing = window.rows - rows
        if missing > 0 and not self.scans[window.scan].request.collection.condition:
            self.limits.given_back(missing)

    def release(self, window: Window, parts: int) -> Window | None:
        """So many parts of the window are sent with this batch. What is left of it; None when that is nothing."""
        release = Release(window, window.sent + parts)
        self.released.append(release)
        if not release.is_last:
            return replace(window, sent=release.upto)
        scan = self.scans[window.scan]
        rows = window.reading.rows if window.reading else 0
        self.scans[scan.number] = replace(scan, rows_read=scan.rows_read + rows)
        return None

    def read_again(self, window: Window) -> None:
        """Drops the window's rows; its range is read anew, at once. Nobody's fault."""
        self.dropped.append(window.id)
        missed = Range(window.lower, window.upper, window.rows, window.attempt, window.faults, window.lost)
        self.put_in_front(window.scan, missed)

    def begin_again(self, number: int, reason: str) -> bool:
        """Let the table of a scan be read from its beginning. Return False if the table has ended instead, because it
        was begun ``MAX_BEGINNINGS`` times.

        The windows of the scan go: they hold rows of before, and their borders must never be ranges of the new pass.
        """
        scan = self.scans[number]
        if scan.begun_again + 1 >= MAX_BEGINNINGS:
            self.end(scan, notes.CHANGED_TOO_OFTEN, f"the table was begun {MAX_BEGINNINGS} times; last: {reason}")
            return False
        self.warn(f"{scan.table}: {reason}; the table is read from its beginning", scan.request.signal)
        self.dropped.extend(window.id for window in self.held if window.scan == number)
        self.held = [window for window in self.held if window.scan != number]
        self.scans[number] = replace(
            scan,
            described=False,
            maximum=None,
            boundary=None,
            again=(),
            quarantine=(),
            rows_read=0,
            begun_again=scan.begun_again + 1,
            asked=0,
        )
        return True

    def put_in_front(self, number: int, missed: Range) -> None:
        """The narrowest ranges come first, so halving goes down to the bad row before it spreads."""
        scan = self.scans[number]
        self.scans[number] = replace(scan, again=(missed, *scan.again))

    # -- tables

    def open(self, request: Request, chunk_rows: int) -> Scan:
        self.scans_begun += 1
        scan = self.scans[self.scans_begun] = Scan(self.scans_begun, request, chunk_rows)
        return scan

    def end(self, scan: Scan, status: str, reason: str = "") -> None:
        """End the table, well or not."""
        self._forget({scan.number})
        if scan.lost_readings > 1:
            count = f"{scan.lost_readings} readings of its chunks were lost and repeated"
            self.warn(f"{scan.table}: {count}", scan.request.signal)
        if reason:
            self.warn(f"{scan.table}: {status}: {shorten(reason, REASON)}", scan.request.signal)
        self._take_from_unfinished(scan.request)
        missing = [(each.lower, each.upper) for each in scan.quarantine]
        fields = {"missing_keys": notes.key_ranges(missing)} if missing else {}
        if reason:
            fields["reason"] = shorten(reason, REASON)
        self._scan_completed(scan.request.signal, str(scan.table), status, scan.rows_read, **fields)

    def still_scanned(self, scans: Iterable[Scan]) -> list[Scan]:
        """Return the scans as they are now."""
        return [self.scans[scan.number] for scan in scans]

    def _take_from_unfinished(self, request: Request) -> None:
        if self._unfinished is not None and request.table in (left := self._unfinished.get(request.signal, {})):
            del left[request.table]
            if not left:
                del self._unfinished[request.signal]

    def unknown(self, signal: str, name: str) -> None:
        """``name`` fits no table that is captured."""
        self._scan_completed(signal, shorten(name), notes.UNKNOWN_SCHEMA, 0)

    def _scan_completed(self, signal: str, name: str, status: str, rows: int, **fields: str) -> None:
        self._ended_signals.append(signal)
        self.notify(
            signal,
            notes.TABLE_SCAN_COMPLETED,
            data_collections=comma_list(self.unfinished().get(signal, ()), FEW_NAMED),
            scanned_collection=name,
            total_rows_scanned=str(rows),
            status=status,
            **fields,
        )

    def abort(self, stops: Callable[[Request], bool]) -> dict[str, list[Request]]:
        """Forgets all tables that ``stops`` names, with their windows; tells which, by signal."""
        stopped: dict[str, list[Request]] = {}
        for signal, requests in self.unfinished().items():
            if gone := [request for request in requests.values() if stops(request)]:
                stopped[signal] = gone
        self._forget({number for number, scan in self.scans.items() if stops(scan.request)})
        self.queue = [request for request in self.queue if not stops(request)]
        self._unfinished = None
        self._ended_signals = [signal for signal in self._ended_signals if signal not in stopped]
        return stopped

    def _forget(self, going: Collection[int]) -> None:
        self.dropped.extend(window.id for window in self.held if window.scan in going)
        self.held = [window for window in self.held if window.scan not in going]
        # Windows planned in this very batch have no files yet; they simply are not planned.
        self.planned = [window for window in self.planned if window.scan not in going]
        for number in going:
            del self.scans[number]

    def completed_signals(self) -> list[str]:
        """Signals of which a table ended in this batch and nothing is left: each is named once."""
        left = self.unfinished()
        completed = [signal for signal in dict.fromkeys(self._ended_signals) if signal not in left]
        self._ended_signals = [signal for signal in self._ended_signals if signal in left]
        return completed

    def finished(self) -> SnapshotContext:
        return SnapshotContext(
            queue=tuple(self.queue),
            scans=tuple(self.scans.values()),
            planned=tuple(self.planned),
            held=tuple(self.held),
            released=tuple(self.released),
            dropped=tuple(self.dropped),
            notifications=tuple(self.notifications),
            paused=self.paused,
            paused_by=self.paused_by,
            throttle=self.limits.throttle,
            recent=tuple(self.recent),
            scans_begun=self.scans_begun,
        )
