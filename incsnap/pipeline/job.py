"""The composition root: settings in, a running StreamingQuery out.

binlog source ──► repartitionById(bucket) ──► Kafka sink
(planner, slices)                             (one transaction a bucket and batch)
      │ asks for chunks                            ▲ rows of windows, from files
      └──► jobs of readers, beside the stream ─────┘
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from types import FrameType

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, IncsnapError, OffsetError, shorten
from incsnap.pipeline.files import Files
from incsnap.pipeline.only_one import only_one
from incsnap.pipeline.planner import first_position
from incsnap.pipeline.progress import read_progress
from incsnap.pipeline.reader_jobs import ReaderJobs, Readers
from incsnap.pipeline.session import is_local
from incsnap.pipeline.sink import OPTION as SINK_OPTION
from incsnap.pipeline.sink import KafkaSink, SinkOptions
from incsnap.pipeline.sink import register as register_sink
from incsnap.pipeline.source import OPTION as SOURCE_OPTION
from incsnap.pipeline.source import STOP, STOPPED, BinlogSource, SourceOptions, first_offset
from incsnap.pipeline.spark_log import SparkLog
from incsnap.pipeline.starting import Starting
from incsnap.pipeline.status import newest_offset
from incsnap.pipeline.telling import told
from incsnap.pipeline.unfinished import take_back

log = logging.getLogger(__name__)

#: A clean stop waits this long for the batch under way, then interrupts it; it is repeated at the next start.
_STOP_SECONDS = 60.0


class SparkDied(IncsnapError):
    hint = "See the log above; was it out of memory (spark.driver.memory)? Start again: the offset is kept."
    resumable = False


def buffer_root(settings: Settings) -> str:
    """Where the job keeps what Spark's checkpoint does not: window buffers, discards, progress."""
    return settings.checkpoint_location.rstrip("/") + "/incsnap"


def start(spark: SparkSession, settings: Settings) -> StreamingQuery:
    """Starts the job on ``spark`` and returns its query; ``query.stop()`` ends it, ``awaitTermination`` follows it.

    The same ``checkpoint.location`` continues where the last run stopped. Raises ``ServerUnreachable`` or ``SinkError``
    when a new job cannot find its beginning, ``OffsetError`` when the checkpoint is not whole. Run ``incsnap check``
    (``preflight``) first: nothing is checked here.
    """
    root = buffer_root(settings)
    if is_local(settings.checkpoint_location) and not str(spark.sparkContext.master).startswith("local"):
        log.warning(
            "checkpoint.location is a path, %s, and Spark runs on %s: all its machines must see the same folder there",
            settings.checkpoint_location,
            spark.sparkContext.master,
        )
    for name in (STOP, STOPPED):
        Files(root).delete(name)
    readers = Readers.of(spark.sparkContext.defaultParallelism, settings.snapshot.threads)

    def begin() -> object:
        return first_position(settings, root, buckets_for(settings.topic_creation.default.partitions, readers.stream))

    SparkLog(settings.checkpoint_location).mend()
    take_back(settings, root)
    # What Spark has saved goes before the file: it is of the same job, or the file is of another one.
    saved = newest_offset(settings.checkpoint_location.rstrip("/"))
    if saved is None and read_progress(root).batches:
        raise OffsetError(
            f"{settings.checkpoint_location}: Spark's part of the checkpoint is gone, but the job has sent batches",
            "Start with a new checkpoint.location and signal execute-snapshot for the tables: begun again under its old"
            " name, the job would skip batches that it believes to be sent.",
        )
    first = saved or first_offset(root, begin)
    topics = sorted(set(first.layout.partitions) - {settings.notifications.sink_topic})
    if topics and not any(name.startswith(settings.topic_prefix) for name in topics):
        raise ConfigError(
            f"{settings.checkpoint_location} is the checkpoint of a job with another topic.prefix than"
            f" {settings.topic_prefix}: it writes to {', '.join(topics[:3])}",
            "Set topic.prefix as it was, or give the job a checkpoint.location of its own.",
        )
    # The number of buckets is the job's for good: a key's window rows and events must meet in one sink task.
    buckets = first.layout.buckets
    level = logging.getLogger("incsnap").getEffectiveLevel()
    sink = SinkOptions(
        settings.kafka.bootstrap_servers, settings.topic_prefix, first.job_id, root, settings.kafka.producer
    )
    spark.dataSource.register(BinlogSource)
    register_sink(spark)
    jobs = ReaderJobs(spark, settings, root, readers, level)
    place = jobs.address
    source = SourceOptions(
        settings.to_json(), root, buckets, readers.stream, readers.count, place.path, place.key, level
    )
    try:
        query = (
            spark.readStream.format(BinlogSource.name())
            .option(SOURCE_OPTION, source.to_json())
            .load()
            .repartitionById(buckets, col("bucket"))
            .writeStream.format(KafkaSink.name())
            .option(SINK_OPTION, sink.to_json())
            .option("checkpointLocation", settings.checkpoint_location.rstrip("/") + "/spark")
            .queryName(f"incsnap {settings.topic_prefix}")
            .start()
        )
    except BaseException:
        jobs.close()
        raise
    jobs.follow(query)
    return query


def buckets_for(partitions: int, slots: int) -> int:
    """Of a new job: how many sink tasks a batch has, and transactions at most. ``partitions``: of a topic that the job
    makes, -1 for the brokers' choice. ``slots``: of the stream.

    No more than can be busy: one sends what two tasks decode, a topic of one partition is sent by one; and the fewer
    there are, the more often each meets the worker that has kept its producer (``kafka.kept``).
    """
    return max(1, slots // 2, min(slots, partitions))


def stop(query: StreamingQuery, settings: Settings) -> None:
    """Stops at a batch boundary: no new batch is planned, the one under way is waited for, and so is one that is being
    planned. Spark asks for a batch only when the one before is done."""
    files = Files(buffer_root(settings))
    files.delete(STOPPED)
    files.write(STOP, b"")
    deadline = time.monotonic() + _STOP_SECONDS
    while query.isActive and not files.exists(STOPPED) and time.monotonic() < deadline:
        time.sleep(0.05)
    query.stop()
    for name in (STOP, STOPPED):
        files.delete(name)


def run_forever(settings: Settings, begun: Starting) -> None:
    """Runs the job in the foreground until SIGINT or SIGTERM, which stop it at a batch boundary.

    A failure that may pass (a server that is away) starts it again from the same offset, after a growing pause
    (``errors.retry.delay.*``); any other is raised, and ``ConfigError`` when another job has the checkpoint.
    """
    stopping = threading.Event()

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            log.warning("Asked to stop twice: stopping at once")
            os._exit(130)
        log.info("Stopping after the batch under way (%s)", signal.Signals(number).name)
        stopping.set()

    before = {number: signal.signal(number, ask_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with only_one(settings.checkpoint_location, buffer_root(settings)):
            spark = begun.session()
            # PySpark has taken it: its handler cancels the jobs and raises KeyboardInterrupt in the middle of anything.
            signal.signal(signal.SIGINT, ask_to_stop)
            try:
                _supervise(spark, settings, stopping)
            finally:
                with contextlib.suppress(Py4JError, ConnectionError):  # there is no JVM any more, which is told
                    spark.stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _supervise(spark: SparkSession, settings: Settings, stopping: threading.Event) -> None:
    retries = settings.retries
    failures, delay = 0, retries.initial_delay_ms / 1000
    while not stopping.is_set():
        began = time.monotonic()
        try:
            query = start(spark, settings)
            log.info("Streaming to topics %s%s*", settings.topic_prefix, settings.topic_delimiter)
            while query.isActive and not stopping.wait(0.2):
                pass
            if query.isActive:
                stop(query, settings)
            error = _failure(query)
            if error is None:
                log.info("Stopped")
                return
        except IncsnapError as failure:
            error = failure
        except (Py4JError, ConnectionError) as failure:
            raise SparkDied(f"Spark's JVM does not answer any more: {shorten(failure)}") from None
        if time.monotonic() - began > 60:
            failures, delay = 0, retries.initial_delay_ms / 1000
        failures += 1
        if not error.resumable or (0 <= retries.max_retries < failures):
            raise error
        log.warning("%s; started again in %.1f s (failure %d)", error.message, delay, failures)
        stopping.wait(delay)
        delay = min(delay * 2, retries.max_delay_ms / 1000)


def _failure(query: StreamingQuery) -> IncsnapError | None:
    """Why the query ended by itself; Spark gives nothing but a text."""
    failure = query.exception()
    if failure is None:
        return None
    return told(str(failure)) or IncsnapError(
        f"The query failed: {_cause(str(failure))}", "Look at the log above; the offset is kept."
    )


def _cause(text: str) -> str:
    """The Python error in Spark's text. Behind it Spark prints the query with its offsets, which may be long."""
    said = text.partition("=== Streaming Query ===")[0]
    begin = said.rfind("Traceback (most recent call last)")
    return said[max(begin, 0) :].strip()[-2000:]
