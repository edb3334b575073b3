"""The watch of the driver: a thread that keeps the job's status up to date and publishes it.

Every second the thread combines the planner's report, the counters of committed batches and the state of the query. It
keeps 15 minutes of history for the page, writes the status file beside the checkpoint and logs a line every 30 seconds.
The stream never waits for this thread.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from incsnap.errors import IncsnapError, shorten
from incsnap.monitoring.gap_status import GapStatus
from incsnap.monitoring.last_snapshot import SnapshotHistory
from incsnap.monitoring.log_line import line, purge_warning
from incsnap.monitoring.outages import KAFKA, MYSQL, Outages, failure_by
from incsnap.monitoring.planner_report import PlannerReport, read
from incsnap.monitoring.rates import JobRates
from incsnap.monitoring.snapshot_view import kept_tables
from incsnap.monitoring.status import (
    RETRYING,
    RUNNING,
    STARTING,
    Failure,
    JobStatus,
    StreamStatus,
    Sums,
    clock_ms,
    dump,
)
from incsnap.monitoring.verification_status import VerificationStatus
from incsnap.version import __version__

log = logging.getLogger(__name__)

#: Name of the status file in the folder `incsnap` of `checkpoint.location`.
NAME = "status.json"
#: Seconds between two renewals of the status.
_EVERY_SECONDS = 1.0
#: Seconds between two log lines of a running job.
_LOG_SECONDS = 30.0
#: Points of history: 900 seconds, one point a second.
_HISTORY = 900
#: Notifications that the status keeps when the query is restarted.
_KEPT = 50
_MESSAGE = 2_000
#: A planner that has not reported for so long is dead, or about to be started again.
_SILENT_MS = 5_000
#: Seconds between two looks until a run streams.
_STARTING_SECONDS = 0.2
#: A run that does not stream for so long, while its servers answer, counts as running: it may hang.
_LONGEST_START_MS = 120_000


class StatusStore(Protocol):
    """The store of the status file, for example `checkpoint.files.Files`."""

    def write(self, name: str, content: bytes) -> None: ...


class Point(NamedTuple):
    """A point of the history that the page shows."""

    ms: int  #: time, in milliseconds since 1970
    lag_ms: int
    events: float  #: a second, as are `rows` and `bytes`
    rows: float
    bytes: float


@dataclass(frozen=True, slots=True)
class _Run:
    """The state of the job, as the driver's main thread knows it."""

    state: str  #: one of the states in `status`
    since_ms: int  #: when the job entered `state`, in ms since 1970
    failure: Failure | None = None  #: last failure, also of an earlier run


class Watch:
    """The watch of one job. It starts its thread at once and lives until `close`, over restarts of the query.

    `sums` reads the counters of committed batches. `file_seconds` is the time between two writes of the status file; it
    is longer for a store that charges for each write. `every_seconds` is the time between two renewals of the status in
    memory. `log_seconds` is the time between two log lines. `outages`: of the job's servers.
    """

    def __init__(
        self,
        topic_prefix: str,
        store: StatusStore,
        sums: Callable[[], Sums],
        file_seconds: float = _EVERY_SECONDS,
        every_seconds: float = _EVERY_SECONDS,
        log_seconds: float = _LOG_SECONDS,
        outages: Outages | None = None,
    ) -> None:
        now_ms = clock_ms()
        self._store, self._sums = store, sums
        self._file_seconds, self._every, self._log_seconds = file_seconds, every_seconds, log_seconds
        self._rates = JobRates()
        self.outages = outages or Outages({})
        self._lock = threading.Lock()
        self._run = _Run(STARTING, now_ms)
        self._report_path: Path | None = None
        self._report: PlannerReport | None = None
        #: The file that `_report` was read from.
        self._reported: Path | None = None
        #: The report of the run that is known to stream. A run streams when its server sends.
        self._streaming: Path | None = None
        #: Topics for the log line of the run that begins.
        self._topics = ""
        #: Connections of earlier runs. All of them have ended.
        self._lost_before = 0
        #: Transactions that earlier runs have delivered.
        self._sent_before = 0
        self._snapshots = SnapshotHistory()
        self._verification: VerificationStatus | None = None
        self._gap: GapStatus | None = None
        self._history: deque[Point] = deque(maxlen=_HISTORY)
        self._status = JobStatus(
            release=__version__,
            topic_prefix=topic_prefix,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_ms=now_ms,
            state=STARTING,
            since_ms=now_ms,
            written_ms=now_ms,
            every_ms=round(file_seconds * 1000),
            mysql=self.outages.address(MYSQL),
            kafka=self.outages.address(KAFKA),
        )
        self._closing = threading.Event()
        self._write_failed = False
        #: The binlog file that the job needed when the last line was logged, and the last file that a warning was
        #: logged for.
        self._needed = self._warned_of = ""
        self._thread = threading.Thread(target=self._watch, name="incsnap-watch", daemon=True)
        self._thread.start()

    # -- called by the job

    def enter(self, state: str, failure: Failure | None = None) -> None:
        """Record that the job has entered `state`. The last `failure` stays until another failure or `recovered`."""
        with self._lock:
            self._run = _Run(state, clock_ms(), failure or self._run.failure)

    def follow(self, report: Path, topics: str = "") -> None:
        """Record that a run of the query has begun. `report` is the file in which its planner reports.

        The job counts as running when the server sends its binlog. After a failure something must be delivered too, or
        nothing is left to deliver. `topics`: for the log line that says so.
        """
        with self._lock:
            self._report_path, self._topics = report, topics
        self.enter(RUNNING)

    def recovered(self) -> None:
        """Reset the count of failures in a row, because a run has lasted."""
        with self._lock:
            failure = self._run.failure
            if failure is not None and failure.count:
                self._run = replace(self._run, failure=replace(failure, count=0, next_try_ms=0))

    def close(self, state: str, failure: Failure | None = None) -> None:
        """Record the final state in the status file and end the thread. Later calls have no effect."""
        if self._closing.is_set():
            return
        self.enter(state, failure)
        self._closing.set()
        self._thread.join()
        self.outages.close()

    def verified(self, verification: VerificationStatus) -> None:
        """Record what the comparisons of the job's tables have shown."""
        with self._lock:
            self._verification = verification

    def gap(self, gap: GapStatus) -> None:
        """Record how far the comparison behind a gap in the binlog is."""
        with self._lock:
            self._gap = gap

    # -- called by readers of the status

    def status(self) -> JobStatus:
        """Return the status, at most a second old."""
        with self._lock:
            return self._status

    def history(self) -> list[Point]:
        """Return the points of the last 15 minutes, oldest first."""
        with self._lock:
            return list(self._history)

    # -- the thread

    def _watch(self) -> None:
        write_at, log_at = 0.0, time.monotonic() + self._log_seconds
        while True:
            is_starting = self._report_path != self._streaming
            closing = self._closing.wait(min(self._every, _STARTING_SECONDS) if is_starting else self._every)
            try:
                status = self._look()
            except Exception as error:  # noqa: BLE001 - the job must not be without eyes for one bad look
                log.warning("Cannot update the status of the job: %s", shorten(error))
                status = None
            if status is not None and (closing or time.monotonic() >= write_at):
                write_at = time.monotonic() + self._file_seconds
                self._write(status)
            if status is not None and status.state == RUNNING and time.monotonic() >= log_at:
                log_at = time.monotonic() + self._log_seconds
                if text := line(status):
                    log.info("%s", text)
                self._warn_of_purge(status)
            if closing:
                return

    def _warn_of_purge(self, status: JobStatus) -> None:
        """Log that the server may purge a file that the job needs, once for each file.

        A job that keeps up needs a file for a moment after the server has begun the next one. So the warning is logged
        only if the job needed the same file at the previous log line.
        """
        file = status.stream.needs_file if status.stream is not None else ""
        text = purge_warning(status) if file and file == self._needed and file != self._warned_of else ""
        if text:
            self._warned_of = file
            log.warning("%s", text)
        self._needed = file

    def _look(self) -> JobStatus:
        with self._lock:
            run, path, before = self._run, self._report_path, self._status
            verification, gap = self._verification, self._gap
        report = self._read_report(path)
        sums, now = self._sums(), time.monotonic()
        status = replace(
            before,
            state=run.state,
            since_ms=run.since_ms,
            failure=run.failure,
            written_ms=clock_ms(),
            sums=sums,
            rates=self._rates.of_job(now, sums),
            outages=self.outages.current(),
            verification=verification,
            gap=gap,
        )
        if report is not None:
            # The new planner does not know the notifications and ended tables of earlier runs of the query.
            began_ms = report.notifications[0].timestamp_ms if report.notifications else status.written_ms
            older = tuple(each for each in before.notifications if each.timestamp_ms < began_ms)
            first_ms = report.snapshot.finished[0].ended_ms if report.snapshot.finished else status.written_ms
            ended = tuple(each for each in before.snapshot.finished if each.ended_ms < first_ms)
            finished = kept_tables((*ended, *report.snapshot.finished))
            status = replace(
                status,
                asked_ms=report.asked_ms,
                stream=self._over_runs(_stream(report, before, status.written_ms)),
                snapshot=replace(self._rates.of_tables(now, report.snapshot), finished=finished),
                notifications=(*older, *report.notifications)[-_KEPT:],
            )
            self._snapshots.see(report.notifications)
            active = len(report.snapshot.tables) + report.snapshot.waiting
            status = replace(status, last_snapshot=self._snapshots.last(active, status.written_ms))
        status = self._with_state(status, run, path)
        lag_ms = status.stream.lag_ms if status.stream is not None else 0
        rates = status.rates
        with self._lock:
            self._status = status
            if not self._history or status.written_ms - self._history[-1].ms >= self._every * 900:
                self._history.append(Point(status.written_ms, lag_ms, rates.events, rates.rows, rates.bytes))
        return status

    def _read_report(self, path: Path | None) -> PlannerReport | None:
        """Return the newest report of the run at `path`, or the last one of the run before."""
        newest = read(path) if path is not None else None
        if newest is not None:
            if path != self._reported and self._report is not None:
                # A connection that was open in the last report ended with its run.
                last = self._report.stream
                self._lost_before += last.disconnects + last.connected
                self._sent_before += last.transactions
            self._report, self._reported = newest, path
        return self._report

    def _over_runs(self, stream: StreamStatus) -> StreamStatus:
        """Return the stream's status with the counts of earlier runs added."""
        lost, sent = self._lost_before + stream.disconnects, self._sent_before + stream.transactions
        return replace(stream, disconnects=lost, transactions=sent)

    def _with_state(self, status: JobStatus, run: _Run, path: Path | None) -> JobStatus:
        """Return the status with the state that the servers allow: a job that waits for one of them is not running."""
        failures = run.failure.count if run.failure is not None else 0
        report, stream = self._report, status.stream
        sends = report is not None and stream is not None and stream.connected and self._reported == path
        self.outages.doubt(in_doubt=failures > 0 or (self._streaming is not None and not sends))
        if stream is not None and run.state in (RUNNING, RETRYING):
            mysql_is_away = any(each.server == MYSQL for each in status.outages)
            # The last report of a run that has ended says how the run was, not how it is now.
            connected = sends and run.state == RUNNING and not mysql_is_away
            status = replace(status, stream=replace(stream, connected=connected))
        if run.state != RUNNING:
            if run.state == RETRYING and status.outages:
                return replace(status, failure=failure_by(status.outages[0], run.failure))
            return status
        if sends and path != self._streaming and (not failures or (report is not None and report.has_delivered)):
            self._streaming = path
            if self._topics:
                log.info("Streaming to topics %s", self._topics)
        if status.outages:
            return replace(status, state=RETRYING, failure=failure_by(status.outages[0], run.failure))
        if path == self._streaming or status.written_ms - run.since_ms > _LONGEST_START_MS:
            return status
        return replace(status, state=RETRYING if failures else STARTING)

    def _write(self, status: JobStatus) -> None:
        try:
            self._store.write(NAME, json.dumps(dump(status)).encode())
            self._write_failed = False
        except (OSError, IncsnapError) as error:
            if not self._write_failed:
                log.warning("Cannot write the status file, so `incsnap status` shows old figures: %s", shorten(error))
            self._write_failed = True


def failure_of(error: BaseException, count: int = 0, next_try_ms: int = 0) -> Failure:
    """Return `error` as the `Failure` that `enter` and `close` take. Cut message and hint to 2,000 characters."""
    message = error.message if isinstance(error, IncsnapError) else f"{type(error).__name__}: {error}"
    hint = error.hint if isinstance(error, IncsnapError) else IncsnapError.hint
    return Failure(shorten(message, _MESSAGE), shorten(hint, _MESSAGE), clock_ms(), count, next_try_ms)


def _stream(report: PlannerReport, before: JobStatus, now_ms: int) -> StreamStatus:
    """Return the stream's status with its lag.

    The planner knows no lag until its run has delivered something. Until then the lag of the previous run keeps
    growing. In the first run the lag is the time since the job's start.
    """
    stream, silent_ms = report.stream, now_ms - report.made_ms
    if silent_ms >= _SILENT_MS:
        # A silent planner delivers nothing.
        stream = replace(stream, lag_ms=stream.lag_ms + silent_ms, connected=False)
    if report.has_delivered:
        return stream
    was_ms, at_ms = (before.stream.lag_ms, before.written_ms) if before.stream is not None else (0, before.started_ms)
    return replace(stream, lag_ms=max(stream.lag_ms, was_ms + now_ms - at_ms))
