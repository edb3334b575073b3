"""The next context while it is being made. It is mutable, lives for one call of the engine, and is never saved.

The engine's steps say *what* happens. This module says *how* that changes the state, each change in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from incsnap.errors import shorten
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.context import Range, Release, Request, Scan, SnapshotContext, id_of
from incsnap.snapshot.failures import back_off_ms
from incsnap.snapshot.notifications import FEW_NAMED, Notification, comma_list
from incsnap.snapshot.throttle import ThrottleLimits
from incsnap.snapshot.window import Window
from incsnap.tables import TableId

#: Characters of an error in warnings and notifications. The text may end with what to do.
REASON = 400
#: Times that a table is begun before it ends with CHANGED_TOO_OFTEN. A migration changes a key once or twice; a table
#: that is swapped every few minutes would be read for ever.
MAX_BEGINNINGS = 10
#: Batches in a row that may drop windows of a table whose rows nothing tells apart. With the growing waits between them
#: these are eight minutes.
MAX_DISTURBANCES = 22


class Warned(NamedTuple):
    """A warning for the log."""

    text: str  #: the warning
    signal: str  #: id of the signal that the warning is about


class NextContext:
    """The state at the end of batch `batch`, while the engine makes it.

    It begins as `context`, without the parts that belong to the last batch alone. `finished` returns the next context.
    `configured` are the limits on reading in the settings. Nothing is asked about the tables `away`, which come back
    soon.
    """

    def __init__(
        self,
        context: SnapshotContext,
        batch: int,
        now_ms: int,
        configured: Mapping[str, int] | None = None,
        away: frozenset[TableId] = frozenset(),
    ) -> None:
        self.batch = batch
        self.now_ms = now_ms
        #: Folded, because a statement may spell a table otherwise than the server.
        self.away = frozenset(table.folded for table in away)
        self.queue: list[Request] = list(context.queue)
        self.scans: dict[int, Scan] = {scan.number: scan for scan in context.scans}
        self.scans_begun = context.scans_begun
        #: Windows of earlier batches that are neither completely released nor dropped so far.
        self.held: list[Window] = []
        self.planned: list[Window] = []
        self.released: list[Release] = []
        self.dropped: list[str] = []
        self.notifications: list[Notification] = []
        self.warned: list[Warned] = []
        #: Boundaries that this batch has waited for.
        self.cuts = 0
        #: Numbers of scans whose question takes long (`questions.NotYet.is_late`).
        self.late: set[int] = set()
        self.paused, self.paused_by = context.paused, context.paused_by
        self.limits = ThrottleLimits(context.throttle, configured or {})
        self.recent: list[str] = list(context.recent)
        self._ended_signals: list[str] = []
        #: Cache of `unfinished`. Each of thousands of tables asks for it as it ends.
        self._unfinished: dict[str, dict[TableId, Request]] | None = None

    # -- notifications, warnings, requests

    def notify(self, signal: str, kind: str, **fields: str) -> None:
        """Add a notification for the signal with the identity `signal`. `fields` become its additional data."""
        self.notifications.append(Notification(id_of(signal), kind, self.now_ms, tuple(fields.items())))

    def warn(self, text: str, signal: str) -> None:
        """Add a warning for the log, about the signal with the identity `signal`."""
        self.warned.append(Warned(text, id_of(signal)))

    def give_up_row(self, signal: str, table: TableId, first: str, last: str, error: str) -> None:
        """Warn that a row of the table cannot be read or sent, and add the notification QUARANTINED.

        The snapshot goes on without the row. The caller has already put the row's key into quarantine: the list of keys
        of the table that were given up. `last` is the row's key, as text. `first` is the key before it, or equals
        `last` if the key before is not known: the notification names the keys from `first`, excluded, to `last`.
        `error` is the reason.
        """
        reason = shorten(error, REASON)
        self.warn(f"{table}: the row with key {last} is given up: {reason}", signal)
        fields = {"data_collections": str(table), "first_key": first, "last_key": last, "error": reason}
        self.notify(signal, notes.QUARANTINED, **fields)

    def unfinished(self) -> dict[str, dict[TableId, Request]]:
        """Return the tables that are read or wait: by signal id, then by table, in order. A signal has a table once."""
        if self._unfinished is None:
            self._unfinished = {}
            for request in (*(scan.request for scan in self.scans.values()), *self.queue):
                self._unfinished.setdefault(request.signal, {})[request.table] = request
        return self._unfinished

    def ask(self, requests: Iterable[Request]) -> None:
        """Put the requests at the end of the queue."""
        self.queue += requests
        self._unfinished = None

    # -- windows

    def plan(self, scan: Scan, span: Range) -> None:
        """Plan a window of this batch over the range `span`."""
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
        """Note that `rows` rows were read of the window.

        If the window has fewer rows than it was planned for, give the rest back to the limit of rows per second. Give
        nothing back if there is a condition or a sample: the server has read the rows that are left out.
        """
        missing = window.rows - rows
        scan = self.scans[window.scan]
        if missing > 0 and not (scan.request.collection.condition or scan.chosen.every):
            self.limits.given_back(missing)

    def release(self, window: Window, parts: int) -> Window | None:
        """Send `parts` parts of the window with this batch.

        Return the window with the rest, or None if no part is left.
        """
        release = Release(window, window.sent + parts)
        self.released.append(release)
        if not release.is_last:
            return replace(window, sent=release.upto)
        scan = self.scans[window.scan]
        rows, absent = (window.result.rows, window.result.absent) if window.result else (0, 0)
        self.scans[scan.number] = replace(
            scan, rows_read=scan.rows_read + rows, absent=scan.absent + absent, disturbances=0
        )
        return None

    def read_again(self, window: Window) -> None:
        """Drop the window's rows, and let its range be read again at once. Its counts of failures stay as they are."""
        self.dropped.append(window.id)
        missed = Range(window.lower, window.upper, window.rows, window.attempt, window.faults, window.lost)
        self.put_in_front(window.scan, missed)

    def disturbed(self, number: int) -> None:
        """Let a table wait whose events have dropped windows, because nothing tells its rows apart.

        The table waits longer each time, and is given up after `MAX_DISTURBANCES` batches without a window that could
        be sent.
        """
        scan = self.scans[number]
        times = scan.disturbances + 1
        if times >= MAX_DISTURBANCES:
            reason = (
                f"{times} times in a row, events changed the table before a chunk of it could be sent. Nothing tells"
                " its rows apart, so no event can discard a row: signal it while nobody writes to it, or give it a key"
            )
            self.end(scan, notes.CHANGED_TOO_OFTEN, reason)
            return
        self.scans[number] = replace(scan, disturbances=times, not_before_ms=self.now_ms + back_off_ms(times))

    def begin_again(self, number: int, reason: str, *, warns: bool = True) -> bool:
        """Let the table of a scan be read from its beginning, with a warning if `warns`.

        Return False if the table has ended instead, because it was begun `MAX_BEGINNINGS` times. Drop all windows of
        the scan: their rows are outdated, and their ranges must not become ranges of the new pass. No part of them is
        sent with this batch either. Otherwise a row that Kafka refuses for its size would be reported as missing,
        though the new pass sends it.
        """
        scan = self.scans[number]
        if scan.begun_again + 1 >= MAX_BEGINNINGS:
            self.end(scan, notes.CHANGED_TOO_OFTEN, f"the table was begun {MAX_BEGINNINGS} times; last: {reason}")
            return False
        if warns:
            self.warn(f"{scan.table}: {reason}; the table is read from its beginning", scan.request.signal)
        windows = (*self.held, *(release.window for release in self.released))
        # A window of which a part is to be sent is in both lists.
        self.dropped.extend(dict.fromkeys(window.id for window in windows if window.scan == number))
        self.held = [window for window in self.held if window.scan != number]
        self.released = [release for release in self.released if release.window.scan != number]
        self.scans[number] = replace(
            scan,
            described=False,
            maximum=None,
            boundary=None,
            again=(),
            quarantine=(),
            rows_read=0,
            absent=0,
            begun_again=scan.begun_again + 1,
            asked=0,
        )
        return True

    def put_in_front(self, number: int, missed: Range) -> None:
        """Put a range in front of those to read again.

        So the narrowest ranges come first, and halving reaches the bad row before it spreads.
        """
        scan = self.scans[number]
        self.scans[number] = replace(scan, again=(missed, *scan.again))

    # -- tables

    def open(self, request: Request, chunk_rows: int) -> Scan:
        """Begin a scan of the requested table. Return the scan."""
        self.scans_begun += 1
        scan = self.scans[self.scans_begun] = Scan(self.scans_begun, request, chunk_rows)
        return scan

    def end(self, scan: Scan, status: str, reason: str = "") -> None:
        """End the table with a status of TABLE_SCAN_COMPLETED. `reason` says why it failed; "" if it did not."""
        self._forget({scan.number})
        if scan.lost_readings > 1:
            count = f"{scan.lost_readings} readings of its chunks were lost and repeated"
            self.warn(f"{scan.table}: {count}", scan.request.signal)
        if reason:
            self.warn(f"{scan.table}: {status}: {shorten(reason, REASON)}", scan.request.signal)
        self._take_from_unfinished(scan.request)
        missing = [(each.lower, each.upper) for each in scan.quarantine]
        fields = {"missing_keys": notes.key_ranges(missing)} if missing else {}
        if scan.keys:
            fields["absent_keys"] = str(scan.absent)
        if reason:
            fields["reason"] = shorten(reason, REASON)
        self._scan_completed(scan.request.signal, str(scan.table), status, scan.rows_read, **fields)

    def still_scanned(self, scans: Iterable[Scan]) -> list[Scan]:
        """Return the scans as the engine's earlier steps in this batch have left them.

        All of them must still be scanned.
        """
        return [self.scans[scan.number] for scan in scans]

    def _take_from_unfinished(self, request: Request) -> None:
        """Take the request's table out of the cache of `unfinished`."""
        if self._unfinished is not None and request.table in (left := self._unfinished.get(request.signal, {})):
            del left[request.table]
            if not left:
                del self._unfinished[request.signal]

    def unknown(self, signal: str, name: str) -> None:
        """Report that `name` fits no captured table."""
        self._scan_completed(signal, shorten(name), notes.UNKNOWN_SCHEMA, 0)

    def _scan_completed(self, signal: str, name: str, status: str, rows: int, **fields: str) -> None:
        """Add the notification that a table of the signal has ended. It names the table and those that are left."""
        self._ended_signals.append(signal)
        self.notify(
            signal,
            notes.TABLE_SCAN_COMPLETED,
            data_collections=comma_list(self.unfinished().get(signal, ()), FEW_NAMED, first=name),
            scanned_collection=name,
            total_rows_scanned=str(rows),
            status=status,
            **fields,
        )

    def abort(self, stops: Callable[[Request], bool]) -> dict[str, list[Request]]:
        """Drop all tables for which `stops` is true, with their windows. Return their requests, by signal id."""
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
        """Drop the scans with these numbers, and their windows."""
        self.dropped.extend(window.id for window in self.held if window.scan in going)
        self.held = [window for window in self.held if window.scan not in going]
        # Windows that this batch has planned have no files yet, so they are only taken out of the plan.
        self.planned = [window for window in self.planned if window.scan not in going]
        for number in going:
            del self.scans[number]

    def completed_signals(self) -> list[str]:
        """Return the signals of which a table has ended in this batch and no table is left.

        Return each of them once.
        """
        left = self.unfinished()
        completed = [signal for signal in dict.fromkeys(self._ended_signals) if signal not in left]
        self._ended_signals = [signal for signal in self._ended_signals if signal in left]
        return completed

    def finished(self) -> SnapshotContext:
        """Return the next context."""
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
