"""The data source `incsnap-kafka`, a sink: each task writes one bucket's share of a batch in one Kafka transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pydantic import BaseModel, Field
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from incsnap.checkpoint.first_offset import require_shared
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.progress import BucketCounts, add_batch
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.errors import SinkError
from incsnap.kafka.announcements import OwnStart, PrefixTaken
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.event_topics import event_topics
from incsnap.kafka.transaction import BucketWriter
from incsnap.spark import process_log
from incsnap.spark.source import OPTION
from incsnap.tasks.bucket import write_bucket
from incsnap.tasks.error_text import hint_in_message
from incsnap.tasks.left_out import SizeRule

_log = logging.getLogger(__name__)
FORMAT = "incsnap-kafka"
#: Variable of the sink's workers, which keeps them apart from other workers (`register`).
_WORKERS = "INCSNAP_WORKERS"


class SinkOptions(BaseModel, frozen=True, extra="forbid"):
    """Everything that the sink needs. It travels as JSON in the option `OPTION`."""

    settings: str = Field(repr=False)  #: `Settings.to_json`
    job_id: str
    own: OwnStart | None = None  #: the start that sends; None if no other start is possible
    many_machines: bool = False  #: whether tasks run on other machines, of which each must see the checkpoint
    log_level: int = logging.INFO  #: level of the tasks' log


@dataclass(frozen=True)
class BucketCommitMessage(WriterCommitMessage):
    """The message of a task to the driver: the counts of its bucket."""

    counts: BucketCounts  #: of the task's bucket


class KafkaWriter(DataSourceStreamArrowWriter):
    """The writer of one query's batches. It travels to every task and holds settings only."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._settings = Settings.from_json(options.settings)
        self._root = own_part(self._settings.checkpoint_location)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one bucket's share of a batch. Spark calls this in a task."""
        with hint_in_message():
            options, settings = self._options, self._settings
            self._set_up()
            if options.many_machines:
                require_shared(self._root)
            client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
            sizes = SizeRule(client, settings.oversized, str(settings.signals.data_collection or ""))

            def partitions_of(topic: str) -> int:
                return event_topics(client, settings.topic_creation).partitions(topic)

            try:
                writer = BucketWriter(client, settings.topic_prefix, options.job_id, options.own)
                return BucketCommitMessage(
                    write_bucket(iterator, WindowBuffers(self._root), writer, partitions_of, sizes)
                )
            except (SinkError, PrefixTaken) as error:
                # The query reports this error only after Spark has repeated the task in vain, seconds later.
                _log.warning("A sink task for the topics %s failed: %s", settings.topic_prefix, error.message)
                raise

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Add the counts of all buckets to the job's progress. Spark calls this in the driver when a batch is done."""
        self._set_up()
        counts = [message.counts for message in messages if isinstance(message, BucketCommitMessage)]
        add_batch(self._root, self._options.job_id, batchId, counts)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Log that the batch failed.

        Nothing is undone: buckets that have committed see the batch's number when it is repeated.
        """
        self._set_up()
        done = sum(message is not None for message in messages)
        _log.warning(
            "Batch %d of %s failed after %d of %d tasks. It will be repeated",
            batchId,
            self._settings.topic_prefix,
            done,
            len(messages),
        )

    def _set_up(self) -> None:
        """Set up the log and the access to an object store in this process, which has unpickled this object."""
        process_log.set_up(self._options.log_level, self._settings.monitoring.log_format)
        set_access(self._settings.checkpoint_location, self._settings.store)


class KafkaSink(DataSource):
    """Spark's data source `incsnap-kafka`, which can only be written to.

    Use it as `df.writeStream.format("incsnap-kafka").option(OPTION, ...)`, with `SinkOptions` as JSON. The DataFrame
    `df` has the columns of `blocks.SCHEMA` and comes from `repartitionById(buckets, col("bucket"))`.
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
