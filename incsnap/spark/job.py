"""The job: from settings to a running StreamingQuery, and to its stop at the end of a batch.

    binlog source ──► repartitionById(bucket) ──► Kafka sink
    (planner, slices)                             (one transaction per bucket and batch)
          │ asks for chunks                            ▲ rows of windows, from files
          └──► jobs of readers, beside the stream ─────┘

The source is `source`, the sink is `sink`, the readers' jobs are `reader_jobs`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import first_offset
from incsnap.checkpoint.gap_files import GapFiles
from incsnap.checkpoint.location import is_local, own_part
from incsnap.checkpoint.progress import read_progress
from incsnap.checkpoint.spark_log import SparkLog
from incsnap.checkpoint.status import newest_offset
from incsnap.config.object_store import is_object_store
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, OffsetError
from incsnap.kafka.announcements import OwnStart
from incsnap.monitoring.job_status import Watch
from incsnap.planner.begin_again import begin_again_where_lost
from incsnap.planner.begin_where_asked import begin_again_where_asked
from incsnap.planner.late_start import refuse_late_start
from incsnap.planner.planner import first_position
from incsnap.planner.unfinished_batch import take_back
from incsnap.snapshot.offset import Offset
from incsnap.spark import prefix_taken
from incsnap.spark.prefix_start import PrefixStart
from incsnap.spark.query_watch import call_at_end
from incsnap.spark.reader_jobs import ReaderJobs, ReaderPool
from incsnap.spark.sink import KafkaSink, SinkOptions
from incsnap.spark.sink import register as register_sink
from incsnap.spark.source import COMPLETE, OPTION, STOP, STOPPED, BinlogSource, SourceOptions

log = logging.getLogger(__name__)

#: Seconds that a clean stop waits for the running batch. Then the batch is interrupted, and the next start repeats it.
STOP_SECONDS = 60.0
#: Seconds to wait until the query of a start that was replaced has ended by itself. It looks every 3 s.
_REPLACED_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the job. One by `incsnap run` may have several queries, one after the other."""

    watch: Watch  #: the watch over all queries
    prefix: PrefixStart  #: the start that owns the prefix for all queries
    name: str  #: id of the run, for snapshot.mode=always


def begin(spark: SparkSession, settings: Settings, run: Run) -> StreamingQuery:
    """Start a query of `run` on `spark` and return it. It goes on where the last query of the checkpoint stopped.

    The caller holds the checkpoint's lock. Raise PrefixTaken if another job has the `topic.prefix`. Raise
    ServerUnreachable or SinkError if a new job cannot find its beginning. Raise OffsetError if the checkpoint is
    incomplete. Raise ConfigError if the checkpoint belongs to a job with another topic.prefix.
    """
    root = own_part(settings.checkpoint_location)
    for name in (STOP, STOPPED, COMPLETE):
        Files(root).delete(name)
    readers = ReaderPool.of(spark.sparkContext.defaultParallelism, settings.snapshot.threads)
    prefix = run.prefix
    new_buckets = buckets_for(settings.topic_creation.default.partitions, readers.stream)
    prefix.ensure(new_buckets)
    first = _beginning(settings, root, new_buckets, prefix.own)
    # The number of buckets never changes in a job: a key's window rows and its events must meet in one sink task.
    buckets = first.layout.buckets
    prefix.begin(first.job_id, buckets, first.snapshot)
    level = logging.getLogger("incsnap").getEffectiveLevel()
    # This includes local-cluster[...], whose executors are processes of this machine.
    one_machine = str(spark.sparkContext.master).startswith("local")
    # An object store is the same for all machines, and each look at it costs a request.
    many_machines = not one_machine and not is_object_store(settings.checkpoint_location)
    sink = SinkOptions(
        settings=settings.to_json(),
        job_id=first.job_id,
        own=prefix.own,
        many_machines=many_machines,
        log_level=level,
    )
    spark.dataSource.register(BinlogSource)
    register_sink(spark)
    jobs = ReaderJobs(spark, settings, root, readers, level, many_machines=many_machines)
    folder = os.path.dirname(jobs.address.path)
    ended_path = os.path.join(folder, prefix_taken.NAME)
    source = SourceOptions(
        settings=settings.to_json(),
        buckets=buckets,
        slices=readers.stream,
        readers=readers.count,
        address=jobs.address,
        report_path=jobs.report_path,
        log_level=level,
        run=run.name,
        slice_folder=folder if one_machine else "",
        ended_path=ended_path,
    )
    name = f"incsnap {settings.topic_prefix}"
    try:
        _await_replaced(spark, name)
        query = (
            spark.readStream.format(BinlogSource.name())
            .option(OPTION, source.model_dump_json())
            .load()
            .repartitionById(buckets, col("bucket"))
            .writeStream.format(KafkaSink.name())
            .option(OPTION, sink.model_dump_json())
            .option("checkpointLocation", settings.checkpoint_location.rstrip("/") + "/spark")
            .queryName(name)
            .start()
        )
    except BaseException:
        jobs.close()
        raise
    run.watch.follow(Path(jobs.report_path), f"{settings.topic_prefix}{settings.topic_delimiter}*")
    call_at_end(query, jobs.close)
    if GapFiles(Files(root), first.job_id).is_open():
        # Imported here, because few jobs ever need it.
        from incsnap.spark.gap_recovery import GapRecovery

        call_at_end(query, GapRecovery(spark, settings, root, first.job_id, readers.count, run.watch).close)
    elif settings.verify.interval_seconds is not None:
        # Until a gap is closed, its keys differ. Imported here, because most jobs do not need it.
        from incsnap.spark.standing_verification import begin_rounds

        call_at_end(query, begin_rounds(spark, settings, run.watch).close)
    prefix.follow(query, ended_path)
    if settings.snapshot.mode == "initial_only":
        ends = threading.Thread(
            target=_stop_when_complete, args=(query, settings), name="incsnap-complete", daemon=True
        )
        ends.start()
    return query


def _await_replaced(spark: SparkSession, name: str) -> None:
    """Wait until no query of this name is active in the session. Spark refuses a second query of one name.

    An active one belongs to a start that was replaced. It ends by itself; it is stopped if that takes too long.
    """
    for query in spark.streams.active:
        if query.name == name:
            with contextlib.suppress(StreamingQueryException):  # the program that follows that query sees its error
                query.awaitTermination(_REPLACED_SECONDS)
            query.stop()


def _beginning(settings: Settings, root: str, buckets: int, own: OwnStart) -> Offset:
    """Return the offset at which the job goes on or begins.

    This is the last offset that Spark saved, or a first one, which is written to a file. `buckets`: of a new job.
    Raise OffsetError if Spark's part of the checkpoint is gone. Raise ConfigError if the checkpoint belongs to a job
    with another topic.prefix, or if a connector whose topics it continues has gone on.
    """
    begin_again_where_asked(settings, root)
    begin_again_where_lost(settings, root)
    SparkLog(settings.checkpoint_location).mend()
    take_back(settings, root, own)
    # Spark's log wins over the file. Either both are of the same job, or the file is of another one.
    saved = newest_offset(settings.checkpoint_location.rstrip("/"))
    if saved is None and read_progress(root).batches:
        raise OffsetError(
            f"Spark's part of the checkpoint {settings.checkpoint_location} is gone, but the job has sent batches",
            "Start with a new checkpoint.location and signal execute-snapshot for the tables. With the old checkpoint,"
            " the job would skip batches as already sent.",
        )
    if saved is None:
        refuse_late_start(settings, Files(root))
    first = saved or first_offset(root, lambda: first_position(settings, buckets, Files(root)))
    topics = sorted(set(first.layout.partitions) - {settings.notifications.sink_topic})
    # A transform may give a topic any name.
    if topics and not settings.transforms and not any(name.startswith(settings.topic_prefix) for name in topics):
        raise ConfigError(
            f"The checkpoint {settings.checkpoint_location} belongs to a job with another topic.prefix than"
            f" {settings.topic_prefix}: that job writes to {', '.join(topics[:3])}",
            "Set topic.prefix to its old value. Or give this job a checkpoint.location of its own.",
        )
    return first


def _stop_when_complete(query: StreamingQuery, settings: Settings) -> None:
    """Stop a query that only reads the tables, once the last batch of the snapshot is done."""
    files = Files(own_part(settings.checkpoint_location))
    pause = 0.2 if is_local(settings.checkpoint_location) else 5.0
    with contextlib.suppress(Py4JError, ConnectionError):  # the JVM has ended
        while query.isActive:
            if files.exists(COMPLETE):
                log.info("The snapshot is complete, and snapshot.mode=initial_only: the job ends")
                stop(query, settings)
                return
            time.sleep(pause)


def buckets_for(partitions: int, slots: int) -> int:
    """Return the number of buckets of a new job.

    For each bucket a batch has one sink task, and at most one transaction. `partitions`: of a topic that the job makes,
    -1 if the brokers choose. `slots`: of the stream.

    More buckets than can be busy help nothing: one bucket sends what two tasks decode, and a topic of one partition has
    one bucket. Fewer buckets are also quicker. A bucket's task then more often runs in the worker that has kept the
    bucket's producer (`kafka.producer_cache`).
    """
    return max(1, slots // 2, min(slots, partitions))


def stop(query: StreamingQuery, settings: Settings) -> None:
    """Stop the query at the end of a batch. Do nothing if it has ended: its checkpoint may have a new query.

    No new batch is planned. A batch that runs or is being planned is waited for, for `STOP_SECONDS` at most. Spark asks
    for a batch only when the one before is done.
    """
    if not query.isActive:
        return
    files = Files(own_part(settings.checkpoint_location))
    try:
        files.delete(STOPPED)
        files.write(STOP, b"")
        deadline = time.monotonic() + STOP_SECONDS
        pause = 0.05 if is_local(settings.checkpoint_location) else 0.5
        while query.isActive and not files.exists(STOPPED) and time.monotonic() < deadline:
            time.sleep(pause)
    finally:  # also if the disk is full, or the object store does not answer
        query.stop()
    for name in (STOP, STOPPED):
        files.delete(name)
