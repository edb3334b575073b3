"""A query of the job's shape without its servers: a source and a sink in Python, and the shuffle between them.

The JVM loads for it what it loads for the job, which has no JVM classes of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.functions import col
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

_BATCHES = 3
_SCHEMA = "bucket int, block binary"


class _DryRunReader(DataSourceStreamReader):
    """One row a batch, and a batch whenever it is asked."""

    def __init__(self) -> None:
        self._batch = 0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's names)
        return {"batch": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        self._batch += 1
        return {"batch": self._batch}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(end["batch"])]

    def stop(self) -> None:
        # Spark hangs up and is about to end this process, which is its planner alone; PySpark's way out from here is a
        # stack trace of what cannot be read any more.
        os._exit(0)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict(
            {"bucket": pa.array([0], pa.int32()), "block": pa.array([bytes(1000)], pa.binary())}
        )


class _DryRunWriter(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class _DryRun(DataSource):
    @classmethod
    def name(cls) -> str:
        return "incsnap-dry-run"

    def schema(self) -> str:
        return _SCHEMA

    def streamReader(self, schema: StructType) -> _DryRunReader:  # noqa: N802 (Spark's names)
        return _DryRunReader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> _DryRunWriter:  # noqa: N802
        return _DryRunWriter()


def dry_run(spark: SparkSession, folder: str) -> None:
    """Runs a few batches; their checkpoint is in ``folder``."""
    spark.dataSource.register(_DryRun)
    query = (
        spark.readStream.format(_DryRun.name())
        .load()
        .repartitionById(1, col("bucket"))
        .writeStream.format(_DryRun.name())
        .option("checkpointLocation", folder)
        .queryName("incsnap prepare")
        .start()
    )
    try:
        while query.isActive and ((progress := query.lastProgress) is None or progress.batchId < _BATCHES):
            time.sleep(0.1)
        if error := query.exception():
            raise error
    finally:
        query.stop()
