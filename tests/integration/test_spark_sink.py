"""The sink in a real streaming query: repartitioned blocks, one transaction a bucket, progress on the driver."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.functions import col

from incsnap.checkpoint.progress import read_progress
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.load import from_properties
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, ensure_control_topic, ensure_topics
from incsnap.spark.sink import FORMAT, SinkOptions, register
from incsnap.spark.source import OPTION
from incsnap.tasks import blocks
from tests.support.kafka import keyed, read_all, unique
from tests.support.properties import NEEDED

pytestmark = pytest.mark.servers
BUCKETS, BATCHES = 3, 3


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.adaptive.enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def test_a_query_delivers_every_block_once_and_a_restart_repeats_nothing(
    spark: SparkSession, kafka_address: str, tmp_path: Path
) -> None:
    prefix, root = unique("spark"), str(tmp_path / "incsnap")
    topic = f"{prefix}.d.t"
    admin = admin_client(ClientSettings(kafka_address))
    ensure_control_topic(admin, prefix, BUCKETS)
    ensure_topics(admin, [topic], BUCKETS)
    file = WindowBuffers(root).write_window(
        "w", {b: keyed(*[(f"k{b}-{i}", "r") for i in range(5)], partition=b) for b in range(BUCKETS)}
    )
    spark.dataSource.register(_source(topic, file))
    register(spark)
    properties = {"bootstrap.servers": kafka_address, "topic.prefix": prefix, "checkpoint.location": str(tmp_path)}
    options = SinkOptions(settings=from_properties({**NEEDED, **properties}).settings.to_json(), job_id="job")

    def run() -> None:
        query = (
            spark.readStream.format("blocks")
            .load()
            .repartitionById(BUCKETS, col("bucket"))
            .writeStream.format(FORMAT)
            .option(OPTION, options.model_dump_json())
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    run()
    # Spark forgets that the last batch was done: it is run again, and every bucket knows its number.
    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    run()
    assert (commits / str(last)).exists()
    for bucket in range(BUCKETS):
        records = [(r.key, r.value) for r in read_all(kafka_address, topic, [bucket])]
        rows = [(f"k{bucket}-{i}".encode(), b"r") for i in range(5) if i != 0]
        events = [(f"k{bucket}-0".encode(), f"{batch}-{n}".encode()) for batch in range(1, BATCHES + 1) for n in (0, 1)]
        assert records == events[:2] + rows + events[2:]
    progress = read_progress(root)
    assert (progress.batches, progress.events) == (BATCHES, BATCHES * BUCKETS * 2)
    assert (progress.reads, progress.discarded, progress.skipped) == (BUCKETS * 4, BUCKETS, 0)


def test_a_buckets_producer_stays_in_a_worker_that_no_task_of_the_source_takes(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, sink = tmp_path / "source", tmp_path / "sink"
    spark.dataSource.register(_counting_source(source))
    register(spark, _recording_sink(sink))
    query = (
        spark.readStream.format("numbers")
        .load()
        .repartitionById(1, col("bucket"))
        .writeStream.format("pids")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    reading, writing = (file.read_text().split() for file in (source, sink))
    assert len(reading) == 2 * BATCHES
    assert len(writing) == BATCHES
    assert len(set(writing)) == 1
    assert not set(writing) & set(reading)
    assert "INCSNAP_WORKERS" not in spark.sparkContext.environment


def _recording_sink(file: Path) -> type[DataSource]:
    """Tasks leave the number of their process."""

    class Writer(DataSourceStreamArrowWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            deque(iterator, maxlen=0)
            with file.open("a") as pids:
                pids.write(f"{os.getpid()}\n")
            return WriterCommitMessage()

    class Sink(DataSource):
        @classmethod
        def name(cls) -> str:
            return "pids"

        def streamWriter(self, schema: object, overwrite: bool) -> Writer:  # noqa: N802
            return Writer()

    return Sink


def _counting_source(file: Path) -> type[DataSource]:
    """Batches of two tasks, of one row each; tasks leave the number of their process."""

    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, Any]:  # noqa: N802
            return {"batch": 0}

        def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802
            return {"batch": min(start["batch"] + 1, BATCHES)}

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
            return [InputPartition(n) for _ in range(start["batch"], end["batch"]) for n in (0, 1)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            with file.open("a") as pids:
                pids.write(f"{os.getpid()}\n")
            yield (0,)

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "numbers"

        def schema(self) -> str:
            return "bucket int"

        def streamReader(self, schema: object) -> Reader:  # noqa: N802
            return Reader()

    return Source


def _source(topic: str, file: str) -> type[DataSource]:
    """Batches of two events a bucket; the second releases the window. Local, so that it is pickled by value."""

    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, Any]:  # noqa: N802
            return {"batch": 0}

        def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802
            return {"batch": min(start["batch"] + 1, BATCHES)}

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
            return [InputPartition((batch, n)) for batch in range(start["batch"] + 1, end["batch"] + 1) for n in (1, 0)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            batch, n = partition.value
            rows = [
                blocks.events(batch, bucket, n, topic, "d.t", keyed((f"k{bucket}-0", f"{batch}-{n}"), partition=bucket))
                for bucket in range(BUCKETS)
            ]
            if batch == 2 and n == 0:
                what = blocks.ReleaseOrder(file, "d.t", topic)
                rows += [blocks.release(batch, bucket, 9, what) for bucket in range(BUCKETS)]
            yield blocks.to_arrow(rows, f"2:{batch}")

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "blocks"

        def schema(self) -> str:
            return blocks.SCHEMA

        def streamReader(self, schema: object) -> Reader:  # noqa: N802
            return Reader()

    return Source
