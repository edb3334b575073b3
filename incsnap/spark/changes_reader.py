"""The reader behind a DataFrame of changes: the planner in Spark's long-lived source process, and `read` in its tasks.

The planner is the same as in the job for Kafka. Threads of the planner's process read chunks (`planner.own_readers`).
The source's tasks de-duplicate rows of windows (`tasks.frame_rows`).
"""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
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
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.planned_batch import planned_end
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.object_store import is_object_store
from incsnap.config.settings import Settings
from incsnap.errors import OffsetError
from incsnap.gtid import GtidSet
from incsnap.monitoring.job_status import failure_of
from incsnap.monitoring.status import FAILED, STOPPED, Failure
from incsnap.mysql import preflight, watermarks
from incsnap.mysql.session import connect
from incsnap.planner.own_readers import OwnReaders
from incsnap.planner.planner import Planner, first_position
from incsnap.planner.unfinished_batch import refuse_inside_of_transaction
from incsnap.snapshot.offset import Offset, digest
from incsnap.spark import process_log
from incsnap.spark.query_watch import begin_watch
from incsnap.spark.spark_release import SupportsTriggerAvailableNow, arrow_schema
from incsnap.tasks.error_text import hint_in_message
from incsnap.tasks.frame_rows import FramePart, frame_parts, frame_rows

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

#: Tasks that decode a batch without windows. The number does not depend on the session's cores: a restart may change
#: them, and a repeated batch must be cut as before.
_SLICES = 4
#: Chunks that are read at the same time, if snapshot.max.threads is not set.
_READERS = 2
#: Seconds to wait for the checkpoint. The process of an earlier query may take a moment to end.
_LOCK_SECONDS = 20.0


class ChangesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The planner's interface to Spark for a DataFrame of changes.

    In a task Spark calls `read` only, on a copy of this object that never has a planner.
    """

    def __init__(self, settings: Settings, schema: StructType, executed: GtidSet) -> None:
        set_access(settings.checkpoint_location, settings.store)
        self._settings = settings
        self._schema = arrow_schema(schema)
        self._older = executed
        self._root = own_part(settings.checkpoint_location)
        self._buffers = WindowBuffers(self._root)
        self._planner: Planner | None = None
        self._resources: ExitStack | None = None
        self._checkpoint = CheckpointLock()
        #: The error that ended the query; None if none did.
        self._failure: Failure | None = None
        #: For a query that ends by itself: what the server had executed when the query began. Else None.
        self._until: GtidSet | None = None
        #: End of Spark's newest batch; None before the first one. Only Spark 4.1 needs it.
        self._newest: dict[str, Any] | None = None
        #: Whether the query's first batch has passed the check in `_batch_start`.
        self._goes_on = False
        process_log.set_up(logging.WARNING, settings.monitoring.log_format)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's names)
        """Return the offset at which the stream begins.

        A file keeps this offset: Spark does not log it, and asks again when the first batch has to be repeated. Raise
        OffsetError if the checkpoint belongs to a query that has already done batches.
        """
        with self._noting_failure():
            self._lock_checkpoint()
            plan = planned_end(Files(self._root))
            if plan is not None and plan.batch > 1:
                raise OffsetError(
                    f"The checkpoint {self._settings.checkpoint_location} belongs to a query that has done"
                    f" {plan.batch - 1} batches, but this query begins with an empty checkpointLocation",
                    "Give the query its old checkpointLocation. Or begin again with an empty checkpoint.location.",
                )
            return first_offset(self._root, self._first).dump()

    def _first(self) -> Offset:
        """Return the first offset of a new stream. Raise PreflightFailed if the server is not ready for a stream."""
        preflight.require(preflight.findings(self._settings))
        return first_position(self._settings, 1, Files(self._root))

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Plan the next batch and return its end; return `start` if there is nothing to send.

        Spark 4.1 does not pass `start`. Then take the newest end that this reader has returned or was given. It is the
        right one: Spark runs each batch before it asks for another one. After a restart Spark first calls `partitions`
        up to the end of its log, so that end is known.
        """
        if start is None:
            start = self._newest or self.initialOffset()
        self._newest = self._end_behind(start)
        return self._newest

    def _end_behind(self, start: dict[str, Any]) -> dict[str, Any]:
        """Plan batches from `start` until one has changes, or the query has reached its end. Return the batch's end."""
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
        """Note the GTIDs that the server has executed.

        The query ends once it has read them all and no snapshot is under way.
        """
        with hint_in_message(), closing(connect(self._settings.mysql)) as connection:
            self._until = watermarks.executed(connection)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of the batch between the two offsets."""
        with self._noting_failure():
            planner = self._planning()
            begin, until = self._batch_start(planner, start), planner.offsets.load(end)
            self._newest = end
            return frame_parts(planner.parts(begin, until), until, digest(end))

    def commit(self, end: dict[str, Any]) -> None:
        """Tell the planner that the batch which ends at `end` is done."""
        with self._noting_failure():
            planner = self._planning()
            planner.committed(planner.offsets.load(end))

    def stop(self) -> None:
        """Close the planner, the watch and the checkpoint. Spark calls this when the query ends."""
        if self._resources is not None:
            # Spark first hangs up, which leads to this call, and then ends the process by SIGTERM. The signal is
            # ignored until all is closed and the status is written.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self._resources.close()
            self._resources = self._planner = None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part. Spark calls this in a task."""
        assert isinstance(partition, FramePart)
        with hint_in_message():
            set_access(self._settings.checkpoint_location, self._settings.store)
            if not is_object_store(self._settings.checkpoint_location):
                require_shared(self._root)
            yield from frame_rows(partition, self._settings, self._buffers, self._schema, self._older)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        """Keep an error of the block as the failure of the query, and raise it with its hint in the message."""
        try:
            with hint_in_message():
                yield
        except Exception as error:
            self._failure = failure_of(error)
            raise

    def _is_reached(self, begin: Offset) -> bool:
        """Return True if the query ends by itself and has read everything that it was begun for."""
        if self._until is None or (begin.batch == 0 and self._settings.snapshot.reads_at_start):
            return False
        snapshot = begin.snapshot
        under_way = (snapshot.active and not snapshot.paused) or snapshot.in_flight
        return self._until <= begin.stream.delivered and not under_way

    def _batch_start(self, planner: Planner, start: dict[str, Any]) -> Offset:
        """Return the offset at which a batch begins.

        Raise ConfigError if the batch begins or ends inside a transaction and the settings have changed since.
        """
        begin = planner.offsets.load(start)
        if not self._goes_on:
            refuse_inside_of_transaction(self._settings, self._root, begin)
            self._goes_on = True
        return begin

    def _planning(self) -> Planner:
        """Return the planner. The first call locks the checkpoint and starts the planner and the watch."""
        if self._planner is None:
            self._lock_checkpoint()
            assert self._resources is not None
            # The planner reports through a file, as in a job, though planner and watch are in one process here.
            folder = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="incsnap-report-"))
            report = Path(folder) / "report.json"
            watch = begin_watch(self._settings, self._root, (), self._resources)
            self._resources.callback(lambda: watch.close(STOPPED if self._failure is None else FAILED, self._failure))
            watch.follow(report)
            readers = self._settings.snapshot.threads or _READERS
            self._planner = Planner(
                self._settings,
                self._buffers,
                _SLICES,
                readers,
                partial(OwnReaders, self._settings, self._buffers, readers),
                str(report),
            )
            self._resources.callback(self._planner.close)
        return self._planner

    def _lock_checkpoint(self) -> None:
        """Lock the checkpoint, because two queries would overwrite each other's offsets.

        Raise ConfigError if another query has the lock.
        """
        if self._resources is not None:
            return
        with ExitStack() as resources:
            # Spark ends this process by SIGTERM when the query ends. `_end` makes it call `stop` first.
            resources.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _end))
            self._checkpoint = resources.enter_context(
                checkpoint_lock(self._settings.checkpoint_location, self._root, _LOCK_SECONDS)
            )
            self._resources = resources.pop_all()


def _end(number: int, frame: FrameType | None) -> None:
    """Exit, so that PySpark calls `stop`."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)
