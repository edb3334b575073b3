"""What the planner knows of how the job is doing, told to the driver once a second.

The planner's thread only leaves what it has at hand here, some references for each batch. A thread of this module
makes the report of them, asks the server on a connection of its own, and writes a small file into the folder that the
two processes of the driver's machine share. A file, because only the newest report counts: nobody waits for a reader,
and what a planner that died has left is still there.
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
from incsnap.monitoring.server_facts import ServerFacts, ask, prepare
from incsnap.monitoring.snapshot_view import NO_LIMITS, LimitsInForce, finished_table, snapshot_status
from incsnap.monitoring.status import FinishedTable, NotificationStatus, SnapshotStatus, StreamStatus, clock_ms
from incsnap.snapshot.dataclass_json import from_json
from incsnap.snapshot.notifications import IN_PROGRESS, Notification
from incsnap.snapshot.offset import Offset

log = logging.getLogger(__name__)

#: Seconds between two reports.
EVERY_SECONDS = 1.0
#: Seconds between two questions to the server: four statements of a millisecond, one of which waits for a commit that
#: is being written.
_ASK_SECONDS = 5.0
#: Characters of the delivered GTID set: servers that were replaced often have long ones.
_GTIDS = 2_000
_KEPT = 50
#: Where the last planning found no change, and Spark came back for more so recently, there is nothing to come: a batch
#: of windows alone takes two seconds at most.
_IDLE_MS = 5_000


@dataclass(frozen=True, slots=True)
class PlannerReport:
    """What a planner tells; see ``status.JobStatus``. Rates are missing here."""

    made_ms: int  #: when it was true, in milliseconds since 1970
    asked_ms: int  #: when Spark last asked for a batch
    stream: StreamStatus
    snapshot: SnapshotStatus
    notifications: tuple[NotificationStatus, ...] = ()
    has_delivered: bool = True  #: whether a batch of this run was done, or nothing was to come; else no lag is known


@dataclass(frozen=True, slots=True)
class Planned:
    """What one planning found: the offset at the end of the batch that was planned, or at the beginning of one that
    was not worth it; how far the stream was read; the commit of its last transaction, 0 where there is none, and
    whether more is buffered. ``waits_for``: why no chunk was planned. ``limits``: of reading, in force."""

    offset: Offset
    read_to: StreamPosition
    last_ts_us: int
    is_more_buffered: bool
    waits_for: str
    failed_readings: int
    limits: LimitsInForce = NO_LIMITS


class Reporter:
    """One planner's, who begins at ``start``. Its methods are called by the planner's thread and cost a microsecond;
    ``close`` it."""

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
        #: Nothing is to come that was read: the last planning was worth no batch, or one without changes.
        self._quiet = True
        self._retried = 0
        self._notices: deque[NotificationStatus] = deque(maxlen=_KEPT)
        self._finished: deque[FinishedTable] = deque(maxlen=_KEPT)
        self._facts = ServerFacts()
        self._connection: Connection[Any] | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="incsnap-report", daemon=True)
        self._thread.start()

    # -- the planner's thread

    def batch_asked(self) -> None:
        """Spark asks for a batch: the one before is done."""
        with self._lock:
            self._batch_asked_ms = clock_ms()
            if self._planned_ms:
                self._batch_ms = self._batch_asked_ms - self._planned_ms
                self._planned_ms = 0
            if self._under_way_us:
                self._reached_us, self._under_way_us = self._under_way_us, 0
                self._worst_ms = max(self._worst_ms, self._behind_ms(self._batch_asked_ms))

    def planned(self, planned: Planned, *, is_batch: bool, notifications: Iterable[Notification]) -> None:
        """A planning has come to its end; with ``is_batch`` Spark runs it now."""
        now_ms = clock_ms()
        with self._lock:
            self._planned = planned
            self._retried += planned.failed_readings
            if planned.last_ts_us:
                self._last_change_us = planned.last_ts_us
            if is_batch:
                self._planned_ms = now_ms
                self._under_way_us = planned.last_ts_us
            # Transactions that concern no captured table are read and passed, though the offset waits for a batch.
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
                    self._finished.append(ended)

    def close(self) -> None:
        """Ends the thread, after a last report, unless the server lets it wait; may be called twice."""
        self._closing.set()
        self._thread.join(timeout=2.0)

    # -- the thread

    def _run(self) -> None:
        ask_at = 0.0
        while True:
            closing = self._closing.wait(self._every)
            if not closing and time.monotonic() >= ask_at:
                self._ask(self._planned)
                ask_at = time.monotonic() + _ASK_SECONDS
            with suppress(OSError):  # the driver has ended, and its folder is gone
                write(self._path, self._report())
            if closing:
                break
        if self._connection is not None and self._connection.open:
            self._connection.close()

    def _ask(self, planned: Planned) -> None:
        """A server that does not answer is the stream's matter, which says so; what was known before stays."""
        try:
            if self._connection is None or not self._connection.open:
                self._connection = self._connect()
                prepare(self._connection)
            facts = ask(self._connection, self._facts.tables, planned.offset.snapshot.scans, planned.read_to.at)
        except IncsnapError as error:
            log.debug("The server was not asked how the job is doing: %s", error.message)
            if self._connection is not None and self._connection.open:
                self._connection.close()
            return
        with self._lock:
            self._facts = facts

    def _report(self) -> PlannerReport:
        now_ms, tail = clock_ms(), self._tail()
        with self._lock:
            planned, facts = self._planned, self._facts
            if tail.replaying:
                # As good as asked: this may take as long as a transaction is large, and a job that does it is not hung.
                self._batch_asked_ms = now_ms
            idle = self._quiet and now_ms - self._batch_asked_ms < _IDLE_MS
            lag_ms = max(self._worst_ms, 0 if idle or not self._reached_us else self._behind_ms(now_ms))
            self._worst_ms = 0
            asked_ms, batch_ms, retried = self._batch_asked_ms, self._batch_ms, self._retried
            last_change_ms = self._last_change_us // 1000
            notices, finished = tuple(self._notices), tuple(self._finished)
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
            # The stream may have passed the end that was asked for some seconds ago.
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
            prepared=tuple(each.xid for each in planned.offset.prepared),
        )
        snapshot = snapshot_status(
            planned.offset.snapshot, facts.tables, finished, planned.waits_for, retried, planned.limits
        )
        return PlannerReport(now_ms, asked_ms, stream, snapshot, notices, has_delivered)

    def _behind_ms(self, now_ms: int) -> int:
        return max(0, now_ms + self._facts.ahead_ms - self._reached_us // 1000)


def write(path: Path, report: PlannerReport) -> None:
    """Whole or absent; raises ``OSError`` where the folder is gone."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(asdict(report)))
    os.replace(temporary, path)


def read(path: Path) -> PlannerReport | None:
    """What ``write`` wrote; None where there is nothing yet. The two processes are of one release."""
    try:
        content: Mapping[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return from_json(PlannerReport, content)
