"""The planner's report to the driver, once a second: position, lag, snapshot and notifications.

The planner's thread only stores references after each batch. A thread of this module builds the report, asks the server
on its own connection, and writes a small file into a folder that planner and driver share. A file fits, because only
the newest report counts, writing does not wait for a reader, and the report of a dead planner can still be read.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import TailCondition
from incsnap.errors import IncsnapError, shorten
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.monitoring.lag_statistics import LagSketch
from incsnap.monitoring.server_facts import ServerFacts, ask, prepare
from incsnap.monitoring.snapshot_view import NO_LIMITS, LimitsInForce, finished_table, kept_tables, snapshot_status
from incsnap.monitoring.status import FinishedTable, NotificationStatus, SnapshotStatus, StreamStatus, clock_ms
from incsnap.mysql.session import close
from incsnap.snapshot.dataclass_json import from_json
from incsnap.snapshot.notifications import IN_PROGRESS, Notification
from incsnap.snapshot.offset import Offset

log = logging.getLogger(__name__)

#: Seconds between two reports.
EVERY_SECONDS = 1.0
#: Seconds between two reports until the server sends.
_FIRST_SECONDS = 0.2
#: Seconds between two sets of questions to the server. Each set is four statements of a millisecond. The question about
#: the end of the binlog waits while MySQL writes a commit to the binlog.
_ASK_SECONDS = 5.0
#: Seconds for which answers of the server count as present while the stream goes on: six questions.
_FACTS_SECONDS = 30.0
#: Most characters of the delivered GTID set. After several failovers the set may be long.
_GTIDS = 2_000
#: Notifications that a report has in any case. It also has those of the last seconds: the driver counts all of them,
#: and a batch may end 256 tables. The driver may miss a report.
_KEPT, _KEPT_MS = 50, 10_000
#: Most notifications of a report.
_MOST_KEPT = 4_000
#: The stream is idle if the last planning found no change and Spark asked again within this time. A batch of windows
#: alone takes two seconds at most.
_IDLE_MS = 5_000


@dataclass(frozen=True, slots=True)
class PlannerReport:
    """A report of the planner, with the parts of `status.JobStatus` that only the planner knows."""

    made_ms: int  #: when the report was made, in milliseconds since 1970
    asked_ms: int  #: when Spark last asked for a batch, in milliseconds since 1970
    stream: StreamStatus  #: lag and counts of the stream
    snapshot: SnapshotStatus  #: without rates and remaining times, which the driver adds
    notifications: tuple[NotificationStatus, ...] = ()  #: the last 50, and all of the last ten seconds
    #: Whether this run of the query has finished a batch or had nothing to send. Otherwise the lag is unknown.
    has_delivered: bool = True


@dataclass(frozen=True, slots=True)
class Planned:
    """The result of one planning."""

    offset: Offset  #: the end of the planned batch; the unchanged start if no batch was worth planning
    read_to: StreamPosition  #: position that the stream has reached
    last_ts_us: int  #: commit time of the last transaction, in microseconds since 1970; 0: no transaction
    is_more_buffered: bool  #: whether the tail holds changes after `read_to`
    waits_for: str  #: why no chunk was planned; "" if nothing prevents it
    failed_readings: int  #: readings of chunks that failed or were lost
    limits: LimitsInForce = NO_LIMITS  #: limits on reading that are in force


class Reporter:
    """The reporter of one planner. It writes a report to `path` every `every_seconds` until `close`.

    `start` is the offset that the planner begins with, which is reported before the first planning. `connect` opens a
    connection for questions to the server. `tail` returns the condition of the tail. `buffer_bytes` is the most binlog
    that the tail may hold. The planner's thread calls the public methods; each call takes about a microsecond.
    """

    def __init__(
        self,
        path: str,
        start: Offset,
        connect: Callable[[], Connection[Any]],
        tail: Callable[[], TailCondition],
        buffer_bytes: int,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._path = Path(path)
        self._connect, self._tail = connect, tail
        self._buffer_bytes = buffer_bytes
        self._every = every_seconds
        self._lock = threading.Lock()
        self._planned = Planned(start, start.stream, 0, True, "", 0)
        self._batch_asked_ms = clock_ms()
        self._planned_ms = self._batch_ms = 0
        self._under_way_us = self._reached_us = self._last_change_us = 0
        self._worst_ms = 0
        self._lags = LagSketch()
        #: True if everything that was read is sent: the last planning made no batch, or a batch without changes.
        self._quiet = True
        self._retried = 0
        self._notices: deque[NotificationStatus] = deque(maxlen=_MOST_KEPT)
        self._finished: tuple[FinishedTable, ...] = ()
        self._facts = ServerFacts()
        #: Until when the facts count as present, by the monotonic clock.
        self._facts_until = time.monotonic() + _FACTS_SECONDS
        #: Why the server did not answer the last questions; "" if it did.
        self._unanswered = ""
        #: Transactions delivered before this planner. After a reset of the server, of its new binlog.
        self._least_delivered = len(start.stream.delivered)
        self._connection: Connection[Any] | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="incsnap-report", daemon=True)
        self._thread.start()

    # -- the planner's thread

    def batch_asked(self) -> None:
        """Record that Spark asks for a batch, so the previous batch is done."""
        with self._lock:
            self._batch_asked_ms = clock_ms()
            if self._planned_ms:
                self._batch_ms = self._batch_asked_ms - self._planned_ms
                self._planned_ms = 0
            if self._under_way_us:
                self._reached_us, self._under_way_us = self._under_way_us, 0
                lag_ms = self._behind_ms(self._batch_asked_ms)
                self._worst_ms = max(self._worst_ms, lag_ms)
                self._lags.add(lag_ms)

    def planned(self, planned: Planned, *, is_batch: bool, notifications: Iterable[Notification]) -> None:
        """Record the result of a planning. With `is_batch` Spark now runs the planned batch."""
        now_ms = clock_ms()
        with self._lock:
            self._planned = planned
            self._retried += planned.failed_readings
            if planned.last_ts_us:
                self._last_change_us = planned.last_ts_us
            if is_batch:
                self._planned_ms = now_ms
                self._under_way_us = planned.last_ts_us
            # The tail passes transactions of tables that are not captured, though the offset moves only with a batch.
            self._quiet = not planned.is_more_buffered and not (is_batch and planned.last_ts_us)
            if self._quiet:
                self._reached_us = (now_ms + self._facts.ahead_ms) * 1000
            for notification in notifications:
                if notification.type != IN_PROGRESS:
                    self._notices.append(
                        NotificationStatus(
                            notification.id, notification.type, notification.timestamp_ms, dict(notification.fields)
                        )
                    )
                if (ended := finished_table(notification)) is not None:
                    self._finished = kept_tables((*self._finished, ended))
            while len(self._notices) > _KEPT and self._notices[0].timestamp_ms < now_ms - _KEPT_MS:
                self._notices.popleft()

    def close(self) -> None:
        """End the thread after a last report.

        Wait at most two seconds, because the server may not answer. May be called twice.
        """
        self._closing.set()
        self._thread.join(timeout=2.0)

    # -- the thread

    def _run(self) -> None:
        ask_at, every = 0.0, min(self._every, _FIRST_SECONDS)
        while True:
            closing = self._closing.wait(every)
            if not closing and time.monotonic() >= ask_at:
                self._ask(self._planned)
                ask_at = time.monotonic() + _ASK_SECONDS
            with suppress(OSError):  # the driver has ended, and its folder is gone
                report = self._report()
                write(self._path, report)
                # The driver says that the job streams when the server sends.
                every = self._every if report.stream.connected else min(self._every, _FIRST_SECONDS)
            if closing:
                break
        close(self._connection)

    def _ask(self, planned: Planned) -> None:
        """Update the facts of the server. If the server does not answer, keep the old facts for `_FACTS_SECONDS`."""
        try:
            if self._connection is None or not self._connection.open:
                self._connection = self._connect()
                prepare(self._connection)
            facts = ask(self._connection, self._facts.tables, planned.offset.snapshot.scans, planned.read_to.at)
        except IncsnapError as error:
            log.debug("Cannot read figures of the job from MySQL: %s", error.message)
            self._unanswered = error.message
            close(self._connection)
            return
        with self._lock:
            self._facts, self._facts_until = facts, time.monotonic() + _FACTS_SECONDS
        self._unanswered = ""

    def _forget_old_facts(self, tail: TailCondition) -> None:
        """Forget where the server's binlog ends if the server has not said so for long, and log why.

        A stream that goes on would pass the old end, and seem to be 0 bytes behind. While the stream is not connected
        the old facts stay: the status says that they are old.
        """
        if not tail.connected or not self._facts.file or time.monotonic() < self._facts_until:
            return
        with self._lock:
            self._facts = ServerFacts(ahead_ms=self._facts.ahead_ms, tables=self._facts.tables)
        log.warning(
            "MySQL does not tell where its binlog ends, so the bytes behind and the next purge are unknown: %s",
            self._unanswered,
        )

    def _report(self) -> PlannerReport:
        now_ms, tail = clock_ms(), self._tail()
        self._forget_old_facts(tail)
        with self._lock:
            planned, facts = self._planned, self._facts
            if tail.replaying:
                # Counts as a request for a batch: a replay takes as long as the transaction is large, and the job does
                # not hang.
                self._batch_asked_ms = now_ms
            idle = self._quiet and now_ms - self._batch_asked_ms < _IDLE_MS
            lag_ms = max(self._worst_ms, 0 if idle or not self._reached_us else self._behind_ms(now_ms))
            self._worst_ms = 0
            asked_ms, batch_ms, retried = self._batch_asked_ms, self._batch_ms, self._retried
            last_change_ms = self._last_change_us // 1000
            lags = self._lags.statistics()
            notices, finished = tuple(self._notices), self._finished
            has_delivered = self._reached_us > 0
        at = planned.read_to.at
        passed = facts.bytes_behind(at) == 0
        stream = StreamStatus(
            batch=planned.offset.batch,
            file=at.file,
            pos=at.pos,
            delivered=shorten(planned.offset.stream.delivered, _GTIDS),
            server_uuid=at.server_uuid,
            lag_ms=lag_ms,
            lag_bytes=facts.bytes_behind(at),
            # The stream may have passed the end, which was asked for some seconds ago.
            end_file=at.file if passed else facts.file,
            end_pos=at.pos if passed else facts.pos,
            last_change_ms=last_change_ms,
            batch_ms=batch_ms,
            buffered_bytes=tail.buffered_bytes,
            buffer_bytes=self._buffer_bytes,
            connected=tail.connected,
            disconnects=tail.disconnects,
            needs_file=at.file,
            purge_not_before_ms=facts.purge_not_before_ms(at.file, last_change_ms),
            transactions=self._count(planned.offset.stream.delivered),
            prepared=tuple(each.xid for each in planned.offset.prepared),
            lags=lags,
        )
        snapshot = snapshot_status(
            planned.offset.snapshot, facts.tables, finished, planned.waits_for, retried, planned.limits
        )
        return PlannerReport(now_ms, asked_ms, stream, snapshot, notices, has_delivered)

    def _count(self, delivered: GtidSet) -> int:
        """Return how many transactions `delivered` has more than at the start of this planner."""
        now = len(delivered)
        self._least_delivered = min(self._least_delivered, now)
        return now - self._least_delivered

    def _behind_ms(self, now_ms: int) -> int:
        """Return the lag at `now_ms` in milliseconds, corrected by the difference between the two clocks."""
        return max(0, now_ms + self._facts.ahead_ms - self._reached_us // 1000)


def write(path: Path, report: PlannerReport) -> None:
    """Write the report atomically: a reader sees the old or the new file. Raise OSError if the folder is gone."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(asdict(report)))
    os.replace(temporary, path)


def read(path: Path) -> PlannerReport | None:
    """Return the report at `path`, or None if there is none yet. Planner and driver are of the same release."""
    try:
        content: Mapping[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return from_json(PlannerReport, content)
