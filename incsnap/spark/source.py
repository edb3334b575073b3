"""Spark's source: the planner in its long-lived process, and the readers in the tasks. Thin; the work is elsewhere."""

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
from incsnap.checkpoint.location import is_local
from incsnap.checkpoint.object_store import reach
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.planner.choices import choices_digest
from incsnap.planner.chunk_readers import Address, ChunkReaders
from incsnap.planner.planner import Planner, first_position
from incsnap.snapshot.delivered_place import batch_place
from incsnap.snapshot.offset import digest
from incsnap.spark import process_log
from incsnap.spark.error_text import hint_in_message
from incsnap.spark.prefix_ended import refuse_if_ended
from incsnap.tasks import blocks
from incsnap.tasks.partitions import ReadyPart, SlicePart
from incsnap.tasks.slice_files import SliceFiles
from incsnap.tasks.slice_rows import slice_rows

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

FORMAT = "incsnap-mysql"
#: The one option. Its name has "secret" in it: Spark then hides the value wherever it shows a plan.
OPTION = "incsnap.secret.settings"
#: While this file is there no new batch is planned: how a clean stop waits for the batch under way.
STOP = "stop"
#: Written when Spark asked for a batch and got none for it: then all that was planned has been run.
STOPPED = "stopped"
#: Written when a job that only reads the tables (snapshot.mode=initial_only) has sent the last batch of them.
COMPLETE = "snapshot-complete"
#: Seconds between two looks for ``STOP`` on a store where each is paid for.
_FAR_SECONDS = 1.0
#: Seconds before Spark may ask again where there is to be no batch.
_PAUSE_SECONDS = 0.05


class SourceOptions(BaseModel, frozen=True, extra="forbid"):
    """All the source must know; travels as JSON in ``OPTION``. ``settings``: ``Settings.to_json``."""

    settings: str = Field(repr=False)
    buffer_root: str
    buckets: int
    slices: int
    readers: int
    #: Of the driver's chunk readers, see ``chunk_readers.Address``.
    reader_path: str
    reader_key: str = Field(repr=False)
    #: Where the planner tells the driver how the job is doing, see ``monitoring.planner_report``.
    report_path: str
    log_level: int = logging.INFO
    #: Of the job, see ``StartSnapshot``.
    run: str = ""
    #: See ``SliceFiles``; "" where tasks may run on other machines, which find slices beside the checkpoint.
    slice_folder: str = ""
    #: The file that the driver writes if another start has taken the prefix.
    ended_path: str = ""


class BinlogReader(DataSourceStreamReader):
    """The planner's face towards Spark; in a task only ``read`` is called, on an object that never had a planner."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._settings = Settings.from_json(options.settings)
        reach(self._settings.checkpoint_location, self._settings.store)
        process_log.set_up(options.log_level, self._settings.monitoring.log_format)
        self._buffers = WindowBuffers(options.buffer_root)
        self._planner: Planner | None = None
        self._choices = choices_digest(self._settings)
        self._look_at = 0.0
        self._slice_files: SliceFiles | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Kept in a file: Spark does not log it, and asks again when the first batch has to be repeated."""
        with hint_in_message():
            options = self._options
            root = options.buffer_root
            return first_offset(root, lambda: first_position(self._settings, options.buckets)).dump()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        files = Files(self._options.buffer_root)
        if self._is_to_stop(files):
            if not files.exists(STOPPED):
                files.write(STOPPED, b"")
            time.sleep(_PAUSE_SECONDS)
            return start
        with hint_in_message():
            refuse_if_ended(self._options.ended_path)
            planner = self._planning()
            begin = planner.offsets.load(start)
            # Spark asks for a batch when the one before is done, so its end says what is.
            if self._settings.snapshot.mode == "initial_only" and begin.has_no_snapshot_left:
                if not files.exists(COMPLETE):
                    files.write(COMPLETE, b"")
                time.sleep(_PAUSE_SECONDS)
                return start
            end = planner.plan(begin)
            return start if end is begin else planner.offsets.dump(end)

    def _is_to_stop(self, files: Files) -> bool:
        """Has somebody asked for a clean stop? On a local disk that is looked for before each batch; where a look is
        paid for, once a second."""
        if not is_local(self._settings.checkpoint_location):
            if time.monotonic() < self._look_at:
                return False
            self._look_at = time.monotonic() + _FAR_SECONDS
        return files.exists(STOP)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with hint_in_message():
            planner = self._planning()
            begin_offset, end_offset = planner.offsets.load(start), planner.offsets.load(end)
            parts = planner.parts(begin_offset, end_offset)
        batch_digest = digest(end)
        place = batch_place(begin_offset, end_offset, self._choices) if parts else ""
        files = self._slices()
        files.forget()
        for part in parts:
            part.digest, part.place = batch_digest, place
            if isinstance(part, SlicePart):
                part.travel_by(files)
        return parts

    def _slices(self) -> SliceFiles:
        """The planner's alone: the reader is made in each task too."""
        if self._slice_files is None:
            own = self._options.slice_folder
            self._slice_files = SliceFiles(own or self._options.buffer_root, shared=not own)
        return self._slice_files

    def commit(self, end: dict[str, Any]) -> None:
        with hint_in_message():
            planner = self._planning()
            planner.committed(planner.offsets.load(end))

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()
            self._planner = None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # In a task this object was not made, but unpacked: its process knows nothing of what was told to the planner's.
        process_log.set_up(self._options.log_level, self._settings.monitoring.log_format)
        reach(self._settings.checkpoint_location, self._settings.store)
        with hint_in_message():
            if isinstance(partition, SlicePart):
                for row in slice_rows(partition, self._settings, time.time_ns() // 1000):
                    yield blocks.to_arrow([row], partition.digest, partition.place)
            elif isinstance(partition, ReadyPart):
                yield blocks.to_arrow(partition.rows, partition.digest, partition.place)

    def _planning(self) -> Planner:
        if self._planner is None:
            options = self._options
            with hint_in_message():
                self._planner = Planner(
                    self._settings,
                    self._buffers,
                    options.slices,
                    options.readers,
                    partial(ChunkReaders, Address(options.reader_path, options.reader_key)),
                    options.report_path,
                    options.run,
                )
        return self._planner


class BinlogSource(DataSource):
    """``spark.readStream.format("incsnap-mysql").option(OPTION, ...)``, the option ``SourceOptions`` as JSON; rows of
    ``blocks.SCHEMA``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return blocks.SCHEMA

    def streamReader(self, schema: StructType) -> BinlogReader:  # noqa: N802 (Spark's names)
        return BinlogReader(SourceOptions.model_validate_json(self.options[OPTION]))
