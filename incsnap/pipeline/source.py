"""Spark's source: the planner in its long-lived process, and the readers in the tasks. Thin; the work is elsewhere."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from incsnap.config.settings import Settings
from incsnap.errors import OffsetError
from incsnap.pipeline import blocks, process_log
from incsnap.pipeline.buffer import WindowBuffers
from incsnap.pipeline.changes import change_blocks
from incsnap.pipeline.chunk_readers import Address, ChunkReaders
from incsnap.pipeline.files import Files
from incsnap.pipeline.parts import ReadyPart, SlicePart
from incsnap.pipeline.planner import Planner, first_position
from incsnap.pipeline.telling import telling
from incsnap.snapshot.offset import Offset, digest

FORMAT = "incsnap-mysql"
#: The one option. Its name has "secret" in it: Spark then hides the value wherever it shows a plan.
OPTION = "incsnap.secret.settings"
_FIRST = "first-offset.json"
#: While this file is there no new batch is planned: how a clean stop waits for the batch under way.
STOP = "stop"
#: Written when Spark asked for a batch and got none for it: then all that was planned has been run.
STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All the source must know; travels as JSON in ``OPTION``."""

    settings: str
    buffer_root: str
    buckets: int
    slices: int
    readers: int
    #: Of the driver's chunk readers, see ``chunk_readers.Address``.
    reader_path: str
    reader_key: str
    log_level: int = logging.INFO

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SourceOptions:
        return cls(**json.loads(text))


class BinlogReader(DataSourceStreamReader):
    """The planner's face towards Spark; in a task only ``read`` is called, on an object that never had a planner."""

    def __init__(self, options: SourceOptions) -> None:
        process_log.set_up(options.log_level)
        self._options = options
        self._settings = Settings.from_json(options.settings)
        self._buffers = WindowBuffers(options.buffer_root)
        self._planner: Planner | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Kept in a file: Spark does not log it, and asks again when the first batch has to be repeated."""
        with telling():
            options = self._options
            root = options.buffer_root
            return first_offset(root, lambda: first_position(self._settings, root, options.buckets)).dump()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        files = Files(self._options.buffer_root)
        if files.exists(STOP):
            if not files.exists(STOPPED):
                files.write(STOPPED, b"")
            time.sleep(0.05)
            return start
        with telling():
            planner = self._planning()
            begin = planner.offsets.load(start)
            end = planner.plan(begin)
            return start if end is begin else planner.offsets.dump(end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with telling():
            planner = self._planning()
            parts = planner.parts(planner.offsets.load(start), planner.offsets.load(end))
        told = digest(end)
        for part in parts:
            part.digest = told
        return parts

    def commit(self, end: dict[str, Any]) -> None:
        with telling():
            planner = self._planning()
            planner.committed(planner.offsets.load(end))

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()
            self._planner = None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with telling():
            if isinstance(partition, SlicePart):
                yield from self._changes(partition)
            elif isinstance(partition, ReadyPart):
                yield blocks.to_arrow(partition.rows, partition.digest)

    def _changes(self, part: SlicePart) -> Iterator[pa.RecordBatch]:
        now_us = time.time_ns() // 1000
        found = change_blocks(
            part.piece, part.charsets, part.layout, self._settings, now_us, part.border, part.defaults
        )
        for number, (bucket, topic, table, records) in enumerate(found):
            # Behind the releases and holds of the batch; slices in order, blocks of a slice in order.
            order = (part.order + 1) << 32 | number
            if table is None:
                yield blocks.to_arrow([blocks.notes(part.batch, bucket, order, topic, records)], part.digest)
            else:
                yield blocks.to_arrow(
                    [blocks.events(part.batch, bucket, order, topic, str(table), records)], part.digest
                )

    def _planning(self) -> Planner:
        if self._planner is None:
            options = self._options
            with telling():
                self._planner = Planner(
                    self._settings,
                    self._buffers,
                    options.slices,
                    options.readers,
                    partial(ChunkReaders, Address(options.reader_path, options.reader_key)),
                )
        return self._planner


class BinlogSource(DataSource):
    """``spark.readStream.format("incsnap-mysql").option(OPTION, SourceOptions(...).to_json())``: ``blocks.SCHEMA``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return blocks.SCHEMA

    def streamReader(self, schema: StructType) -> BinlogReader:  # noqa: N802 (Spark's names)
        return BinlogReader(SourceOptions.from_json(self.options[OPTION]))


def first_offset(root: str, make: Any) -> Offset:
    """The offset before the first batch, as kept in ``root``; made and kept when there is none."""
    files = Files(root)
    content = files.read(_FIRST)
    if content is not None:
        try:
            return Offset.load(json.loads(content.to_pybytes()))
        except ValueError as error:
            raise OffsetError(f"{files.path(_FIRST)} is damaged: {error}") from None
    made: Offset = make()
    files.write(_FIRST, json.dumps(made.dump()).encode(), durable=True)
    return made
