"""The data source `incsnap-kafka`, a sink: each task writes one bucket's share of a batch in one Kafka transaction."""

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
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.progress import BucketCounts, add_batch
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.object_store import StoreAccess
from incsnap.config.settings import OversizedChanges, TopicCreation
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
#: The only option. Its name contains "secret", so Spark hides the value wherever it shows a plan.
OPTION = "incsnap.secret.settings"
#: Variable of the sink's workers, which keeps them apart from other workers (`register`).
_WORKERS = "INCSNAP_WORKERS"


class SinkOptions(BaseModel, frozen=True, extra="forbid"):
    """Everything that the sink needs. It travels as JSON in the option `OPTION`."""

    bootstrap_servers: str
    prefix: str
    job_id: str
    start: str = ""  #: id of the start that sends; "" if no other start is possible
    term: int = 0  #: term of the start that sends
    buffer_root: str  #: `checkpoint.location` + "/incsnap"
    #: the producer's settings, with librdkafka's names
    producer: Mapping[str, str] = Field(default_factory=dict, repr=False)
    oversized: OversizedChanges = OversizedChanges()  #: the handling of changes that are too large
    signal_table: str = ""  #: the signal table, as db.table; "" if there is none
    topic_creation: TopicCreation = TopicCreation()  #: how topics are created that only outbox events name
    many_machines: bool = False  #: whether tasks run on other machines, of which each must see `buffer_root`
    store: StoreAccess = StoreAccess()  #: access to the object store, if `buffer_root` is in one
    log_level: int = logging.INFO  #: level of the tasks' log
    log_format: str = "text"  #: form of the tasks' log, see `process_log`

    def to_json(self) -> str:
        """Return the options as JSON, with the secrets; never log it."""
        return self.model_dump_json(context={"reveal": True})

    def buffers(self) -> WindowBuffers:
        """Return the files of windows and of overtaken keys, beside the checkpoint."""
        set_access(self.buffer_root, self.store)
        return WindowBuffers(self.buffer_root)

    def writer(self) -> BucketWriter:
        """Return the writer that opens a bucket's transactions."""
        start = OwnStart(self.start, self.term) if self.start else None
        return BucketWriter(ClientSettings(self.bootstrap_servers, self.producer), self.prefix, self.job_id, start)

    def sizes(self) -> SizeRule:
        """Return the rule for records that are too large."""
        return SizeRule(ClientSettings(self.bootstrap_servers, self.producer), self.oversized, self.signal_table)

    def partitions_of(self, topic: str) -> int:
        """Return how many partitions a topic has that an event names. Create a missing topic. Raise SinkError."""
        return event_topics(ClientSettings(self.bootstrap_servers, self.producer), self.topic_creation).partitions(
            topic
        )


@dataclass(frozen=True)
class BucketCommitMessage(WriterCommitMessage):
    """The message of a task to the driver: the counts of its bucket."""

    counts: BucketCounts  #: of the task's bucket


class KafkaWriter(DataSourceStreamArrowWriter):
    """The writer of one query's batches. It travels to every task and holds settings only."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one bucket's share of a batch. Spark calls this in a task."""
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
                # The query reports this error only after Spark has repeated the task in vain, seconds later.
                _log.warning("A sink task for the topics %s failed: %s", options.prefix, error.message)
                raise

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Add the counts of all buckets to the job's progress. Spark calls this in the driver when a batch is done."""
        options = self._options
        process_log.set_up(options.log_level, options.log_format)
        set_access(options.buffer_root, options.store)
        counts = [message.counts for message in messages if isinstance(message, BucketCommitMessage)]
        add_batch(options.buffer_root, options.job_id, batchId, counts)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Log that the batch failed.

        Nothing is undone: buckets that have committed see the batch's number when it is repeated.
        """
        process_log.set_up(self._options.log_level, self._options.log_format)
        done = sum(message is not None for message in messages)
        _log.warning(
            "Batch %d of %s failed after %d of %d tasks. It will be repeated",
            batchId,
            self._options.prefix,
            done,
            len(messages),
        )


class KafkaSink(DataSource):
    """The data source of the sink.

    Use it as `df.writeStream.format("incsnap-kafka").option(OPTION, SinkOptions(...).to_json())`. The DataFrame `df`
    has the columns of `blocks.SCHEMA` and comes from `repartitionById(buckets, col("bucket"))`.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaWriter:  # noqa: N802 (Spark's name)
        return KafkaWriter(SinkOptions.model_validate_json(self.options[OPTION]))


def register(spark: SparkSession, sink: type[DataSource] = KafkaSink) -> None:
    """Register the sink so that its tasks have workers of their own.

    Spark keeps idle workers by the environment in which they were started, and gives a task the one that has been idle
    for longest. With one environment for all tasks, tasks of the source and of a bucket take turns. Each bucket then
    finds that another worker's producer has fenced the producer that its own worker has kept. This costs 15 to 23 ms
    per batch (`kafka.producer_cache`).
    """
    environment = spark.sparkContext.environment
    environment[_WORKERS] = "sink"
    try:
        spark.dataSource.register(sink)
    finally:
        del environment[_WORKERS]
