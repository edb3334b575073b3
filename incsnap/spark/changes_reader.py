"""What reads a stream of changes for a DataFrame: the planner, in Spark's long-lived source process, and the tasks.

The planner is the one of Kafka's job; chunks are read by its own threads (``planner.own_readers``), and the rows of
windows are de-duplicated by the source's tasks (``tasks.frame_rows``).
"""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import first_offset, require_shared
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.lock import CheckpointLock, checkpoint_lock
from incsnap.checkpoint.object_store import reach
from incsnap.checkpoint.planned import planned
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.object_store import is_object_store
from incsnap.config.settings import Settings
from incsnap.errors import OffsetError
from incsnap.gtid import GtidSet
from incsnap.monitoring.status import FAILED, STOPPED, Failure
from incsnap.monitoring.watch import Watch, failure_of
from incsnap.mysql import preflight, watermarks
from incsnap.mysql.session import connect
from incsnap.planner.own_readers import OwnReaders
from incsnap.planner.planner import Planner, first_position
from incsnap.planner.unfinished_batch import refuse_inside_of_transaction
from incsnap.snapshot.offset import Offset, digest
from incsnap.spark import process_log
from incsnap.spark.error_text import hint_in_message
from incsnap.spark.spark_release import SupportsTriggerAvailableNow, arrow_schema
from incsnap.spark.watching import begin_watch
from incsnap.tasks.frame_rows import FramePart, frame_parts, frame_rows

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

#: Tasks that decode a batch to which no window belongs. Not by the session's cores, which a restart may change: a batch
#: that is run again is cut as it was.
_SLICES = 4
#: Chunks read at the same time, unless snapshot.max.threads says how many.
_READERS = 2
#: For which a query waits for the one before it, whose process may take a moment to end.
_LOCK_SECONDS = 20.0


class ChangesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The planner's face towards Spark; in a task only ``read`` is called, on an object that never had a planner."""

    def __init__(self, settings: Settings, schema: StructType, executed: GtidSet) -> None:
        reach(settings.checkpoint_location, settings.store)
        self._settings = settings
        self._schema = arrow_schema(schema)
        self._older = executed
        self._root = own_part(settings.checkpoint_location)
        self._buffers = WindowBuffers(self._root)
        self._planner: Planner | None = None
        self._resources: ExitStack | None = None
        self._checkpoint = CheckpointLock()
        self._watch: Watch | None = None
        #: What SIGTERM did in this process.
        self._ended_before: Callable[[int, FrameType | None], Any] | int | None = None
        #: The error of ours that ended the query.
        self._failure: Failure | None = None
        #: What the server had executed when a query that is to end was begun; None where it is not.
        self._until: GtidSet | None = None
        #: The end of the newest batch that Spark has; None before it has told of one. For Spark 4.1 alone.
        self._newest: dict[str, Any] | None = None
        #: Is the query's first batch known to be one that can be told?
        self._goes_on = False
        process_log.set_up(logging.WARNING, settings.monitoring.log_format)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's names)
        """Kept in a file: Spark does not log it, and asks again when the first batch has to be repeated."""
        with self._noting_failure():
            self._lock_checkpoint()
            plan = planned(Files(self._root))
            if plan is not None and plan.batch > 1:
                raise OffsetError(
                    f"{self._settings.checkpoint_location} belongs to a query that has done {plan.batch - 1} batches,"
                    " and this query begins with a new checkpointLocation",
                    "Give the query its checkpointLocation back; or begin anew with an empty checkpoint.location.",
                )
            return first_offset(self._root, self._first).dump()

    def _first(self) -> Offset:
        """A new stream: is the server ready for it?"""
        preflight.require(preflight.findings(self._settings))
        return first_position(self._settings, 1)

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Without ``start`` on Spark 4.1. What it is told there begins the next batch, since Spark runs or repeats that
        before it asks again; and when a query goes on, Spark first asks for partitions up to what its log ends with."""
        if start is None:
            start = self._newest or self.initialOffset()
        self._newest = self._end_behind(start)
        return self._newest

    def _end_behind(self, start: dict[str, Any]) -> dict[str, Any]:
        with self._noting_failure():
            planner = self._planning()
            self._checkpoint.refuse_if_lost()
            begin = self._batch_start(planner, start)
            while not self._is_reached(begin):
                end = planner.plan(begin)
                if end is not begin:
                    return planner.offsets.dump(end)
                if self._until is None:
                    break
            return start

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The query ends when all is told that the server has executed by now, and no snapshot is under way."""
        with hint_in_message(), closing(connect(self._settings.mysql)) as connection:
            self._until = watermarks.executed(connection)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with self._noting_failure():
            planner = self._planning()
            begin, until = self._batch_start(planner, start), planner.offsets.load(end)
            self._newest = end
            return frame_parts(planner.parts(begin, until), until, digest(end))

    def commit(self, end: dict[str, Any]) -> None:
        with self._noting_failure():
            planner = self._planning()
            planner.committed(planner.offsets.load(end))

    def stop(self) -> None:
        if self._watch is not None:
            # Spark hangs up, which leads here, and then ends the process: not before all is closed and told.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self._planner is not None:
            self._planner.close()
            self._planner = None
        if self._watch is not None:
            self._watch.close(STOPPED if self._failure is None else FAILED, self._failure)
            self._watch = None
        if self._resources is not None:
            self._resources.close()
            self._resources = None
        if self._ended_before is not None:
            signal.signal(signal.SIGTERM, self._ended_before)
            self._ended_before = None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FramePart)
        with hint_in_message():
            reach(self._settings.checkpoint_location, self._settings.store)
            if not is_object_store(self._settings.checkpoint_location):
                require_shared(self._root)
            yield from frame_rows(partition, self._settings, self._buffers, self._schema, self._older)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            with hint_in_message():
                yield
        except Exception as error:
            self._failure = failure_of(error)
            raise

    def _is_reached(self, begin: Offset) -> bool:
        """Has a query that is to end told all it was begun for?"""
        if self._until is None or (begin.batch == 0 and self._settings.snapshot.reads_at_start):
            return False
        snapshot = begin.snapshot
        under_way = (snapshot.active and not snapshot.paused) or snapshot.in_flight
        return self._until <= begin.stream.delivered and not under_way

    def _batch_start(self, planner: Planner, start: dict[str, Any]) -> Offset:
        """The offset at which a batch begins. Raises ``ConfigError`` where it must have the settings of the one before
        it."""
        begin = planner.offsets.load(start)
        if not self._goes_on:
            refuse_inside_of_transaction(self._settings, self._root, begin)
            self._goes_on = True
        return begin

    def _planning(self) -> Planner:
        if self._planner is None:
            self._lock_checkpoint()
            assert self._resources is not None
            # How Spark ends this process when the query ends; it is to say so first, by stop().
            before = signal.signal(signal.SIGTERM, _end)
            if self._ended_before is None:
                self._ended_before = before
            self._watch = begin_watch(self._settings, self._root, (), self._resources)
            # Both ends are in this process; it is the way that the planner of a job has.
            folder = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="incsnap-report-"))
            report = Path(folder) / "report.json"
            self._watch.follow(report)
            readers = self._settings.snapshot.threads or _READERS
            self._planner = Planner(
                self._settings,
                self._buffers,
                _SLICES,
                readers,
                partial(OwnReaders, self._settings, self._buffers, readers),
                str(report),
            )
        return self._planner

    def _lock_checkpoint(self) -> None:
        """Two queries would overwrite each other's offsets. Raises ``ConfigError`` where another one has the folder."""
        if self._resources is not None:
            return
        resources = ExitStack()
        self._checkpoint = resources.enter_context(
            checkpoint_lock(self._settings.checkpoint_location, self._root, _LOCK_SECONDS)
        )
        self._resources = resources


def _end(number: int, frame: FrameType | None) -> None:
    """Leads to ``stop``."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)
