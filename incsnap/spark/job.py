"""Puts the job together: from settings to a running StreamingQuery, and to its stop at the end of a batch.

binlog source ──► repartitionById(bucket) ──► Kafka sink
(planner, slices)                             (one transaction a bucket and batch)
      │ asks for chunks                            ▲ rows of windows, from files
      └──► jobs of readers, beside the stream ─────┘
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import first_offset
from incsnap.checkpoint.location import is_local, own_part
from incsnap.checkpoint.lock import checkpoint_lock
from incsnap.checkpoint.object_store import reach
from incsnap.checkpoint.progress import read_progress
from incsnap.checkpoint.spark_log import SparkLog
from incsnap.checkpoint.status import newest_offset
from incsnap.config.object_store import is_object_store
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, OffsetError
from incsnap.kafka.announcements import OwnStart
from incsnap.monitoring.status import FAILED
from incsnap.monitoring.watch import Watch, failure_of
from incsnap.planner.begin_again import begin_again_where_lost
from incsnap.planner.planner import first_position
from incsnap.planner.unfinished_batch import take_back
from incsnap.snapshot.offset import Offset
from incsnap.spark import prefix_ended
from incsnap.spark.prefix_start import PrefixStart
from incsnap.spark.reader_jobs import ReaderJobs, ReaderPool
from incsnap.spark.sink import OPTION as SINK_OPTION
from incsnap.spark.sink import KafkaSink, SinkOptions
from incsnap.spark.sink import register as register_sink
from incsnap.spark.source import COMPLETE, STOP, STOPPED, BinlogSource, SourceOptions
from incsnap.spark.source import OPTION as SOURCE_OPTION
from incsnap.spark.spark_release import require_admission_control
from incsnap.spark.watching import begin_watch, end_with

log = logging.getLogger(__name__)

#: A clean stop waits this long for the batch under way, then interrupts it; it is repeated at the next start.
STOP_SECONDS = 60.0
#: Seconds to wait for the checkpoint of a query of this program that has just ended: a thread lets go of it.
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the job by ``incsnap run``, which may be several queries, one after the other."""

    #: Follows all of them.
    watch: Watch
    #: Has the prefix for all of them.
    prefix: PrefixStart
    #: Names the run (``snapshot.mode=always``).
    name: str


def start(
    spark: SparkSession, settings: Settings, run: Run | None = None, *, replace_job: bool = False
) -> StreamingQuery:
    """Start the job on ``spark`` and return its query; ``query.stop()`` ends it, ``awaitTermination`` follows it.
    With ``snapshot.mode=initial_only`` it ends by itself.

    ``run``: the run that the query is one of; without it this is a new run, which ends with the query and holds the
    checkpoint until then. ``replace_job``: take the place of a job that has the same ``topic.prefix``, which ends then;
    without it such a start is refused.

    The same ``checkpoint.location`` continues where the last run stopped. Raise ``PrefixTaken`` when another job has
    the ``topic.prefix``, ``ServerUnreachable`` or ``SinkError`` when a new job cannot find its beginning,
    ``OffsetError`` when the checkpoint is not whole, ``ConfigError`` on a Spark that is too old or when another
    process has the checkpoint. If another start takes the prefix later, the query fails with ``PrefixTaken`` in its
    text. Run ``incsnap check`` (``preflight``) first: nothing else is checked here.
    """
    require_admission_control()
    location = settings.checkpoint_location
    reach(location, settings.store)
    if run is not None:
        query, report = _begin_query(spark, settings, run.name, run.prefix)
        run.watch.follow(report)
        return query
    with ExitStack() as stack:
        stack.enter_context(checkpoint_lock(location, own_part(location), _PATIENCE_SECONDS))
        # Before the query: where the port of its metrics is taken, there is nothing to end.
        own = begin_watch(settings, own_part(location), (), stack)
        try:
            prefix = PrefixStart(settings, replace_job=replace_job)
            stack.callback(prefix.close)
            query, report = _begin_query(spark, settings, uuid4().hex, prefix)
        except BaseException as error:
            own.close(FAILED, failure_of(error))
            raise
        own.follow(report)
        end_with(query, own, stack.pop_all())
    return query


def _begin_query(spark: SparkSession, settings: Settings, run: str, prefix: PrefixStart) -> tuple[StreamingQuery, Path]:
    """Return the query, and where its planner tells how it goes."""
    root = own_part(settings.checkpoint_location)
    for name in (STOP, STOPPED, COMPLETE):
        Files(root).delete(name)
    readers = ReaderPool.of(spark.sparkContext.defaultParallelism, settings.snapshot.threads)
    prefix.ensure(buckets_for(settings.topic_creation.default.partitions, readers.stream))
    first = _beginning(settings, root, readers.stream, prefix.own)
    # The number of buckets is the job's for good: a key's window rows and events must meet in one sink task.
    buckets = first.layout.buckets
    prefix.begin(first.job_id, buckets)
    level = logging.getLogger("incsnap").getEffectiveLevel()
    # Also local-cluster[...]: executors of their own, on this machine.
    one_machine = str(spark.sparkContext.master).startswith("local")
    # A bucket is the same one for all machines, and each look at it a request.
    many_machines = not one_machine and not is_object_store(settings.checkpoint_location)
    sink = SinkOptions(
        bootstrap_servers=settings.kafka.bootstrap_servers,
        prefix=settings.topic_prefix,
        job_id=first.job_id,
        start=prefix.own.start,
        term=prefix.own.term,
        buffer_root=root,
        producer=settings.kafka.producer,
        oversized=settings.oversized,
        signal_table=str(settings.signals.data_collection or ""),
        topic_creation=settings.topic_creation,
        store=settings.store,
        many_machines=many_machines,
        log_level=level,
        log_format=settings.monitoring.log_format,
    )
    spark.dataSource.register(BinlogSource)
    register_sink(spark)
    jobs = ReaderJobs(spark, settings, root, readers, level, many_machines=many_machines)
    place = jobs.address
    ended_path = os.path.join(os.path.dirname(place.path), prefix_ended.NAME)
    source = SourceOptions(
        settings=settings.to_json(),
        buffer_root=root,
        buckets=buckets,
        slices=readers.stream,
        readers=readers.count,
        reader_path=place.path,
        reader_key=place.key,
        report_path=jobs.report_path,
        log_level=level,
        run=run,
        slice_folder=os.path.dirname(place.path) if one_machine else "",
        ended_path=ended_path,
    )
    try:
        query = (
            spark.readStream.format(BinlogSource.name())
            .option(SOURCE_OPTION, source.model_dump_json())
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
    prefix.follow(query, ended_path)
    if settings.snapshot.mode == "initial_only":
        ends = threading.Thread(
            target=_stop_when_complete, args=(query, settings), name="incsnap-complete", daemon=True
        )
        ends.start()
    return query, Path(jobs.report_path)


def _beginning(settings: Settings, root: str, tasks: int, own: OwnStart) -> Offset:
    """Return where the job goes on, or begins: the last offset that was saved, or a first one, which is written down.

    ``tasks``: of the stream, at the same time.
    """

    def begin() -> Offset:
        return first_position(settings, buckets_for(settings.topic_creation.default.partitions, tasks))

    begin_again_where_lost(settings, root)
    SparkLog(settings.checkpoint_location).mend()
    take_back(settings, root, own)
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
    # Behind a transform a topic may have any name.
    if topics and not settings.transforms and not any(name.startswith(settings.topic_prefix) for name in topics):
        raise ConfigError(
            f"{settings.checkpoint_location} is the checkpoint of a job with another topic.prefix than"
            f" {settings.topic_prefix}: it writes to {', '.join(topics[:3])}",
            "Set topic.prefix as it was, or give the job a checkpoint.location of its own.",
        )
    return first


def _stop_when_complete(query: StreamingQuery, settings: Settings) -> None:
    """Stops a query that only reads the tables, once their last batch is done."""
    files = Files(own_part(settings.checkpoint_location))
    pause = 0.2 if is_local(settings.checkpoint_location) else 5.0
    with contextlib.suppress(Py4JError, ConnectionError):  # there is no JVM any more
        while query.isActive:
            if files.exists(COMPLETE):
                log.info("The snapshot is complete, and snapshot.mode=initial_only: the job ends")
                stop(query, settings)
                return
            time.sleep(pause)


def buckets_for(partitions: int, slots: int) -> int:
    """How many buckets a new job has: the sink tasks of a batch, and its transactions at most. ``partitions``: of a
    topic that the job makes, -1 for the brokers' choice. ``slots``: of the stream.

    No more than can be busy: one sends what two tasks decode, a topic of one partition is sent by one; and the fewer
    there are, the more often each meets the worker that has kept its producer (``kafka.kept``).
    """
    return max(1, slots // 2, min(slots, partitions))


def stop(query: StreamingQuery, settings: Settings) -> None:
    """Stops at a batch boundary: no new batch is planned, the one under way is waited for, and so is one that is being
    planned. Spark asks for a batch only when the one before is done."""
    files = Files(own_part(settings.checkpoint_location))
    files.delete(STOPPED)
    files.write(STOP, b"")
    deadline = time.monotonic() + STOP_SECONDS
    pause = 0.05 if is_local(settings.checkpoint_location) else 0.5
    while query.isActive and not files.exists(STOPPED) and time.monotonic() < deadline:
        time.sleep(pause)
    query.stop()
    for name in (STOP, STOPPED):
        files.delete(name)
