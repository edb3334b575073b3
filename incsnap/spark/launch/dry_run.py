"""A query of the job's shape without its servers: a source and a sink in Python, and the shuffle between them.

`incsnap prepare` runs it so that the JVM lists the classes for the archive (`class_archive`). The JVM loads the same
classes for this query as for the job, which has no JVM classes of its own.
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

_BATCHES = 4


class _DryRunReader(DataSourceStreamReader):
    """A source with one row per batch.

    It has rows for as many batches as are needed. So no batch runs when the query is stopped: Spark would log an error
    about the end of its task.
    """

    def __init__(self) -> None:
        self._batch = 0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's names)
        return {"batch": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        self._batch = min(self._batch + 1, _BATCHES)
        return {"batch": self._batch}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(end["batch"])]

    def stop(self) -> None:
        # Spark has hung up and is about to end this process, which only plans this query. PySpark's own way out from
        # here prints a stack trace about the closed connection.
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
        return "bucket int, block binary"

    def streamReader(self, schema: StructType) -> _DryRunReader:  # noqa: N802 (Spark's names)
        return _DryRunReader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> _DryRunWriter:  # noqa: N802
        return _DryRunWriter()


def dry_run(spark: SparkSession, folder: str) -> None:
    """Run a few batches in the session `spark`. `folder`: for their checkpoint. Raise the query's error if it fails."""
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
        while query.isActive and ((progress := query.lastProgress) is None or progress.batchId + 1 < _BATCHES):
            time.sleep(0.1)
        if error := query.exception():
            raise error
    finally:
        query.stop()
