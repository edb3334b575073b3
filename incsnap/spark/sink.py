"""Spark's sink: each task writes one bucket's share of a batch in one Kafka transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pydantic import BaseModel, Field
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from incsnap.checkpoint.first_offset import require_shared
from incsnap.checkpoint.object_store import reach
from incsnap.checkpoint.progress import BucketCounts, add_batch
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.object_store import StoreAccess
from incsnap.config.settings import OversizedChanges
from incsnap.config.topic_groups import TopicCreation
from incsnap.errors import SinkError
from incsnap.kafka.announcements import OwnStart, PrefixTaken
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.event_topics import event_topics
from incsnap.kafka.transaction import BucketWriter
from incsnap.spark import process_log
from incsnap.spark.error_text import hint_in_message
from incsnap.tasks.bucket import write_bucket
from incsnap.tasks.left_out import SizeRule

_log = logging.getLogger(__name__)
FORMAT = "incsnap-kafka"
#: The one option. Its name has "secret" in it: Spark then hides the value wherever it shows a plan.
OPTION = "incsnap.secret.settings"
_WORKERS = "INCSNAP_WORKERS"


class SinkOptions(BaseModel, frozen=True, extra="forbid"):
    """All the sink must know; travels as JSON in ``OPTION``."""

    bootstrap_servers: str
    prefix: str
    job_id: str
    #: of the start that sends, and its term; "" where no other start can be
    start: str = ""
    term: int = 0
    #: ``checkpoint.location`` + "/incsnap"
    buffer_root: str
    #: librdkafka's names
    producer: Mapping[str, str] = Field(default_factory=dict, repr=False)
    #: what becomes of changes that are too large
    oversized: OversizedChanges = OversizedChanges()
    #: the signal table, as db.table; "": there is none
    signal_table: str = ""
    #: how topics are made that only events name
    topic_creation: TopicCreation = TopicCreation()
    #: Do tasks run on other machines, of which each must see ``buffer_root``?
    many_machines: bool = False
    #: how the bucket is reached that ``buffer_root`` is in, if it is in one
    store: StoreAccess = StoreAccess()
    #: what tasks tell, and how: see ``process_log``
    log_level: int = logging.INFO
    log_format: str = "text"

    def to_json(self) -> str:
        """The options as JSON, with the secrets; never log it."""
        return self.model_dump_json(context={"reveal": True})

    def buffers(self) -> WindowBuffers:
        reach(self.buffer_root, self.store)
        return WindowBuffers(self.buffer_root)

    def writer(self) -> BucketWriter:
        start = OwnStart(self.start, self.term) if self.start else None
        return BucketWriter(ClientSettings(self.bootstrap_servers, self.producer), self.prefix, self.job_id, start)

    def sizes(self) -> SizeRule:
        """Return what tasks do with records that are too large."""
        return SizeRule(ClientSettings(self.bootstrap_servers, self.producer), self.oversized, self.signal_table)

    def partitions_of(self, topic: str) -> int:
        """Raises ``SinkError``."""
        return event_topics(ClientSettings(self.bootstrap_servers, self.producer), self.topic_creation).partitions(
            topic
        )


@dataclass(frozen=True)
class BucketCommitMessage(WriterCommitMessage):
    """What a task tells the driver of its bucket."""

    counts: BucketCounts


class KafkaWriter(DataSourceStreamArrowWriter):
    """Travels to every task; holds settings only."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with hint_in_message():
            options = self._options
            process_log.set_up(options.log_level, options.log_format)
            buffers = options.buffers()
            if options.many_machines:
                require_shared(options.buffer_root)
            try:
                counts = write_bucket(iterator, buffers, options.writer(), options.partitions_of, options.sizes())
                return BucketCommitMessage(counts)
            except (SinkError, PrefixTaken) as error:
                # The query tells of it when Spark has tried the task again in vain, which is seconds later.
                _log.warning("A task of the sink failed: %s", error.message)
                raise

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        options = self._options
        process_log.set_up(options.log_level, options.log_format)
        reach(options.buffer_root, options.store)
        counts = [message.counts for message in messages if isinstance(message, BucketCommitMessage)]
        add_batch(options.buffer_root, options.job_id, batchId, counts)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing to undo: buckets that have committed will see their number when the batch is repeated."""
        process_log.set_up(self._options.log_level, self._options.log_format)
        done = sum(message is not None for message in messages)
        _log.warning("Batch %d failed after %d of %d tasks; it will be repeated", batchId, done, len(messages))


class KafkaSink(DataSource):
    """``df.writeStream.format("incsnap-kafka").option(OPTION, SinkOptions(...).model_dump_json())``, where ``df`` has
    ``blocks.SCHEMA`` and comes from ``repartitionById(buckets, col("bucket"))``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaWriter:  # noqa: N802 (Spark's name)
        return KafkaWriter(SinkOptions.model_validate_json(self.options[OPTION]))


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
