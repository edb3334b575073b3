"""The data source `incsnap-mysql`: the planner in Spark's long-lived source process, and `read` in its tasks.

This module only connects Spark with the planner and the tasks (`planner.planner`, `tasks.slice_rows`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import BaseModel, Field
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import first_offset
from incsnap.checkpoint.location import is_local, own_part
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.planner.choices import choices_digest
from incsnap.planner.chunk_readers import Address, ChunkReaders
from incsnap.planner.planner import Planner, first_position
from incsnap.snapshot.delivered_place import batch_place
from incsnap.snapshot.offset import digest
from incsnap.spark import process_log
from incsnap.spark.prefix_taken import refuse_if_taken
from incsnap.tasks import blocks
from incsnap.tasks.error_text import hint_in_message
from incsnap.tasks.partitions import ReadyPart, SlicePart
from incsnap.tasks.slice_files import SliceFiles
from incsnap.tasks.slice_rows import slice_rows

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

#: The only option, also of the sink. Its name contains "secret", so Spark hides the value wherever it shows a plan.
OPTION = "incsnap.secret.settings"
#: Name of the file that asks for a clean stop. While it exists, no new batch is planned.
STOP = "stop"
#: Name of the file that is written when Spark asks for a batch and gets none because of `STOP`. All planned batches are
#: then done.
STOPPED = "stopped"
#: Name of the file that is written when a job with snapshot.mode=initial_only has sent its last batch.
COMPLETE = "snapshot-complete"
#: Seconds between two looks for `STOP` in a store where each look is paid for.
_FAR_SECONDS = 1.0
#: Seconds before Spark may ask again if there is to be no batch.
_PAUSE_SECONDS = 0.05


class SourceOptions(BaseModel, frozen=True, extra="forbid"):
    """Everything that the source needs. It travels as JSON in the option `OPTION`."""

    settings: str = Field(repr=False)  #: `Settings.to_json`
    buckets: int
    slices: int  #: tasks of the source in one batch
    readers: int  #: chunks that are read at the same time
    address: Address = Field(repr=False)  #: address of the driver's chunk readers, with its key
    report_path: str  #: file in which the planner reports the job's state, see `monitoring.planner_report`
    log_level: int = logging.INFO
    run: str = ""  #: id of the run, see `StartSnapshot`
    #: folder for `SliceFiles`; "" if tasks may run on other machines, which find slices beside the checkpoint
    slice_folder: str = ""
    ended_path: str = ""  #: file that the driver writes if another start has taken the prefix


class BinlogReader(DataSourceStreamReader):
    """The planner's interface to Spark.

    In a task Spark calls `read` only, on a copy of this object that never has a planner.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._settings = Settings.from_json(options.settings)
        set_access(self._settings.checkpoint_location, self._settings.store)
        process_log.set_up(options.log_level, self._settings.monitoring.log_format)
        self._root = own_part(self._settings.checkpoint_location)
        self._buffers = WindowBuffers(self._root)
        self._planner: Planner | None = None
        self._choices = choices_digest(self._settings)
        self._look_at = 0.0
        self._slice_files: SliceFiles | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Return the offset at which the job begins.

        A file keeps this offset: Spark does not log it, and asks again when the first batch has to be repeated.
        """
        with hint_in_message():
            buckets, files = self._options.buckets, Files(self._root)
            return first_offset(self._root, lambda: first_position(self._settings, buckets, files)).dump()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Plan the next batch and return its end; return `start` if there is nothing to send or the job is to stop."""
        files = Files(self._root)
        if self._is_to_stop(files):
            _report(files, STOPPED)
            return start
        with hint_in_message():
            refuse_if_taken(self._options.ended_path)
            planner = self._planning()
            begin = planner.offsets.load(start)
            # Spark asks for a batch when the one before is done, so `start` shows what is done.
            if self._settings.snapshot.mode == "initial_only" and begin.has_no_snapshot_left:
                _report(files, COMPLETE)
                return start
            end = planner.plan(begin)
            return start if end is begin else planner.offsets.dump(end)

    def _is_to_stop(self, files: Files) -> bool:
        """Return True if a clean stop was asked for.

        On a local disk each call looks for the file. In a store where each look is paid for, one call a second does.
        """
        if not is_local(self._settings.checkpoint_location):
            if time.monotonic() < self._look_at:
                return False
            self._look_at = time.monotonic() + _FAR_SECONDS
        return files.exists(STOP)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the parts of the batch between the two offsets, one per task. Large slices go into files."""
        with hint_in_message():
            planner = self._planning()
            begin_offset, end_offset = planner.offsets.load(start), planner.offsets.load(end)
            parts = planner.parts(begin_offset, end_offset)
        batch_digest = digest(end)
        place = batch_place(begin_offset, end_offset, self._choices) if parts else ""
        files = self._slice_files
        assert files is not None  # it begins with the planner
        files.forget()
        for part in parts:
            part.digest, part.place = batch_digest, place
            if isinstance(part, SlicePart):
                part.travel_by(files)
        return parts

    def commit(self, end: dict[str, Any]) -> None:
        """Tell the planner that the batch which ends at `end` is done."""
        with hint_in_message():
            planner = self._planning()
            planner.committed(planner.offsets.load(end))

    def stop(self) -> None:
        """Close the planner. Spark calls this when the query ends."""
        if self._planner is not None:
            self._planner.close()
            self._planner = None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the blocks of one part, as rows of `blocks.SCHEMA`. Spark calls this in a task."""
        # In a task this object is unpickled: `__init__` has not run in this process.
        process_log.set_up(self._options.log_level, self._settings.monitoring.log_format)
        set_access(self._settings.checkpoint_location, self._settings.store)
        with hint_in_message():
            if isinstance(partition, SlicePart):
                for row in slice_rows(partition, self._settings, time.time_ns() // 1000):
                    yield blocks.to_arrow([row], partition.digest, partition.place)
            elif isinstance(partition, ReadyPart):
                yield blocks.to_arrow(partition.rows, partition.digest, partition.place)

    def _planning(self) -> Planner:
        """Return the planner. The first call starts it."""
        if self._planner is None:
            options = self._options
            own = options.slice_folder
            self._slice_files = SliceFiles(own or self._root, shared=not own)
            self._planner = Planner(
                self._settings,
                self._buffers,
                options.slices,
                options.readers,
                partial(ChunkReaders, options.address),
                options.report_path,
                options.run,
            )
        return self._planner


def _report(files: Files, name: str) -> None:
    """Write the empty file `name` if it is missing, and wait: Spark asks again at once for a batch that it lacks."""
    if not files.exists(name):
        files.write(name, b"")
    time.sleep(_PAUSE_SECONDS)


class BinlogSource(DataSource):
    """The data source of the job, with rows of `blocks.SCHEMA`.

    Use it as `spark.readStream.format("incsnap-mysql").option(OPTION, ...)`, with `SourceOptions` as JSON.
    """

    @classmethod
    def name(cls) -> str:
        return "incsnap-mysql"

    def schema(self) -> str:
        return blocks.SCHEMA

    def streamReader(self, schema: StructType) -> BinlogReader:  # noqa: N802 (Spark's names)
        return BinlogReader(SourceOptions.model_validate_json(self.options[OPTION]))
