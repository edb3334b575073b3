"""Spark's sink: each task writes one bucket's share of a batch in one Kafka transaction."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from types import TracebackType
from typing import Protocol

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter
from incsnap.pipeline.bucket import Delivery, gather
from incsnap.pipeline.buffer import WindowBuffers
from incsnap.pipeline.progress import BucketCounts, add_batch
from incsnap.pipeline.telling import telling

_log = logging.getLogger(__name__)
FORMAT = "incsnap-kafka"
#: The one option. Its name has "secret" in it: Spark then hides the value wherever it shows a plan.
OPTION = "incsnap.secret.settings"
_WORKERS = "INCSNAP_WORKERS"


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """All the sink must know; travels as JSON in ``OPTION``."""

    bootstrap_servers: str
    prefix: str
    job_id: str
    #: ``checkpoint.location`` + "/incsnap"
    buffer_root: str
    #: librdkafka's names
    producer: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "producer": dict(self.producer)})

    @classmethod
    def from_json(cls, text: str) -> SinkOptions:
        return cls(**json.loads(text))

    def writer(self) -> BucketWriter:
        return BucketWriter(ClientSettings(self.bootstrap_servers, self.producer), self.prefix, self.job_id)


class OpenTransaction(Protocol):
    """What the sink needs of ``kafka.transaction.Transaction``."""

    def __enter__(self) -> OpenTransaction: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...
    def send(self, topic: str, records: pa.RecordBatch) -> None: ...
    def commit(self) -> None: ...


class Transactions(Protocol):
    """What the sink needs of ``kafka.transaction.BucketWriter``."""

    def open(self, bucket: int, batch: int, digest: str) -> OpenTransaction | None: ...


def write_bucket(rows: Iterator[pa.RecordBatch], buffers: WindowBuffers, transactions: Transactions) -> BucketCounts:
    """One task's work, start to end. Raises ``SinkError``; then nothing of the batch is visible.

    The order matters: keys are written down before the commit, because a batch whose number is committed is never
    looked at again, and they are written down on a replay too, in case it was the files that were lost.
    """
    mine = gather(rows)
    if mine is None:
        return BucketCounts()
    delivery = Delivery(mine, buffers)
    if mine.has_hold:
        buffers.write_discards(mine.batch, mine.bucket, mine.overtaken())
    found = delivery.records()
    first = next(found, None)
    if first is None:
        return delivery.counts
    transaction = transactions.open(mine.bucket, mine.batch, mine.digest)
    if transaction is None:
        deque(found, maxlen=0)
        return replace(delivery.counts, skipped=1)
    with transaction:
        for topic, records in chain([first], found):
            transaction.send(topic, records)
        transaction.commit()
    return delivery.counts


class KafkaWriter(DataSourceStreamArrowWriter):
    """Travels to every task; holds settings only."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with telling():
            return write_bucket(iterator, WindowBuffers(self._options.buffer_root), self._options.writer())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        add_batch(self._options.buffer_root, batchId, [m for m in messages if isinstance(m, BucketCounts)])

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing to undo: buckets that have committed will see their number when the batch is repeated."""
        done = sum(message is not None for message in messages)
        _log.warning("Batch %d failed after %d of %d tasks; it will be repeated", batchId, done, len(messages))


class KafkaSink(DataSource):
    """``df.writeStream.format("incsnap-kafka").option(OPTION, SinkOptions(...).to_json())``, where ``df`` has
    ``blocks.SCHEMA`` and comes from ``repartitionById(buckets, col("bucket"))``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaWriter:  # noqa: N802 (Spark's name)
        return KafkaWriter(SinkOptions.from_json(self.options[OPTION]))


def register(spark: SparkSession, sink: type[DataSource] = KafkaSink) -> None:
    """Registers the sink so that its tasks have workers of their own.

    Spark keeps idle workers by the environment that they were started in, and gives a task the one that has been idle
    for longest. With all tasks in one environment those of the source and of a bucket take turns, and each finds that
    the producer which its worker has kept was fenced by the other worker's: 15-23 ms of every batch (``kafka.kept``).
    """
    environment = spark.sparkContext.environment
    environment[_WORKERS] = "sink"
    try:
        spark.dataSource.register(sink)
    finally:
        del environment[_WORKERS]
