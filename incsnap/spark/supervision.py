"""The job in the foreground: restarts the query after failures that may pass, and stops on SIGINT or SIGTERM."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.lock import CheckpointLock, checkpoint_lock
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.status import newest_offset
from incsnap.config.explained import Explained
from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError, ServerUnreachable, SinkError, shorten
from incsnap.monitoring.job_status import failure_of
from incsnap.monitoring.outages import Outages
from incsnap.monitoring.status import RETRYING, STARTING, STOPPING
from incsnap.spark.full_disk import disk_full
from incsnap.spark.job import Run, begin, stop
from incsnap.spark.launch.startup import Launch
from incsnap.spark.prefix_start import PrefixStart
from incsnap.spark.query_watch import watching
from incsnap.tasks.error_text import error_from_text
from incsnap.version import __version__

log = logging.getLogger(__name__)

#: Seconds after which a query is healthy again: the count of failures and the pause start anew.
_LASTING_SECONDS = 60.0


class SparkDied(IncsnapError):
    """An error: Spark's JVM has ended."""

    hint = "Read the log above: the JVM may lack memory (spark.driver.memory). Start again; the offset is kept."
    resumable = False


def run_forever(
    settings: Settings,
    launch: Launch,
    explained: Sequence[Explained] = (),
    ask: Callable[[SparkSession], None] = lambda spark: None,
    *,
    await_servers: Callable[[Outages, threading.Event], None] | None = None,
    await_place: Callable[[threading.Event], None] | None = None,
    replace_job: bool = False,
) -> None:
    """Run the job in the foreground until SIGINT or SIGTERM, or until it ends by itself (`snapshot.mode=initial_only`).

    A signal stops the job at the end of a batch. After a failure that may pass, for example a server that is away, the
    job restarts from the same offset after a growing pause (`errors.retry.delay.*`). Any other failure is raised:
    ConfigError if another job has the checkpoint, PrefixTaken if another start has or takes the `topic.prefix`,
    SparkDied if the JVM has ended.

    `explained`: the settings as the page shows them. `ask`: called with the session before the first query.
    `await_servers`: called first, if a server did not answer before; it returns when all answer or the event is set.
    `await_place`: called when Spark has started; it returns when the checkpoint has the place at which a new job
    begins, or when the event is set. `replace_job`: see `session_job.start`.
    """
    stopping = threading.Event()

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            log.warning("Second request to stop: ending now. The next start repeats the running batch")
            os._exit(130)
        log.info("Stopping after the running batch (%s)", signal.Signals(number).name)
        stopping.set()

    before = {number: signal.signal(number, ask_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        root = own_part(settings.checkpoint_location)
        set_access(settings.checkpoint_location, settings.store)
        with (
            checkpoint_lock(settings.checkpoint_location, root) as lock,
            watching(settings, root, explained) as watch,
            contextlib.closing(PrefixStart(settings, watch.outages, replace_job=replace_job)) as prefix,
        ):
            _log_start(settings)
            if await_servers is not None:
                watch.enter(RETRYING)
                await_servers(watch.outages, stopping)
                if stopping.is_set():
                    log.info("Stopped")
                    return
                watch.enter(STARTING)
            # The start is announced while the JVM boots, if the control topic exists. A server that is away now is
            # asked again before the first query.
            with contextlib.suppress(ServerUnreachable, SinkError):
                prefix.ensure()
            spark = launch.session()
            try:
                ask(spark)
                if await_place is not None:
                    await_place(stopping)
                _supervise(spark, settings, stopping, launch.before_query, Run(watch, prefix, uuid4().hex), lock)
            finally:
                prefix.close()
                with contextlib.suppress(Py4JError, ConnectionError):  # the JVM has ended, and that was reported
                    spark.stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _log_start(settings: Settings) -> None:
    """Log which release runs, between which servers, and where an existing job continues."""
    mysql, kafka = settings.mysql, settings.kafka.bootstrap_servers
    log.info(
        "incsnap %s: topic.prefix %s, MySQL at %s:%d, Kafka at %s, checkpoint %s",
        *(__version__, settings.topic_prefix, mysql.hostname, mysql.port, kafka, settings.checkpoint_location),
    )
    offset = None
    with contextlib.suppress(IncsnapError, OSError, ValueError):  # the query reports a checkpoint that cannot be read
        offset = newest_offset(settings.checkpoint_location.rstrip("/"))
    if offset is not None:
        at = offset.stream.at
        log.info("The job %s continues after batch %d, at %s:%d", offset.job_id, offset.batch, at.file, at.pos)


def _supervise(
    spark: SparkSession,
    settings: Settings,
    stopping: threading.Event,
    ready: Callable[[], None],
    run: Run,
    lock: CheckpointLock,
) -> None:
    """Run one query after the other, until one ends in order or fails for good.

    `ready` is called before each query. `lock`: of the checkpoint; no query goes on without it. Raise SparkDied if the
    JVM does not answer.
    """
    retries, watch = settings.retries, run.watch
    failures, delay = 0, retries.initial_delay_ms / 1000
    while not stopping.is_set():
        began, is_healthy = time.monotonic(), False
        try:
            ready()
            query = begin(spark, settings, run)
            while query.isActive and not stopping.wait(0.2):
                try:
                    lock.refuse_if_lost()
                    run.prefix.refuse_if_taken()
                except IncsnapError:
                    query.stop()  # so that nothing more is committed
                    raise
                if not is_healthy and time.monotonic() - began > _LASTING_SECONDS:
                    # Spark reports each trigger that has ended, also one without data. A failing batch may take long.
                    is_healthy = query.lastProgress is not None
                if is_healthy:
                    watch.recovered()
            if query.isActive:
                watch.enter(STOPPING)
                stop(query, settings)
            error = _failure(query, settings)
            if error is None:
                log.info("Stopped")
                return
        except IncsnapError as failure:
            error = failure
        except (Py4JError, ConnectionError) as failure:
            full = disk_full(str(failure), settings.checkpoint_location)
            if full is None:
                raise SparkDied(f"Spark's JVM does not answer any more: {shorten(failure)}") from None
            error = full
        except (OSError, PySparkException) as failure:
            full = disk_full(str(failure), settings.checkpoint_location)
            if full is None:
                raise
            error = full
        if stopping.is_set() and error.resumable:
            log.warning("Stopped. The running batch failed, so the next start repeats it: %s", error.message)
            return
        error = run.prefix.cause_of(error)
        if is_healthy:
            failures, delay = 0, retries.initial_delay_ms / 1000
        failures += 1
        if not error.resumable or (0 <= retries.max_retries < failures):
            raise error
        next_try_ms = round((time.time() + delay) * 1000)
        watch.enter(RETRYING, failure_of(error, failures, next_try_ms))
        # An outage logs a line a minute. Its failed tries would be hundreds of lines an hour.
        level = logging.DEBUG if watch.outages.current() else logging.WARNING
        log.log(level, "%s. The job starts again in %.1f s (failure %d)", error.message, delay, failures)
        stopping.wait(delay)
        run.prefix.refuse_if_taken()
        delay = min(delay * 2, retries.max_delay_ms / 1000)


def _failure(query: StreamingQuery, settings: Settings) -> IncsnapError | None:
    """Return why the query ended by itself; None if it did not fail. Spark gives only a text."""
    failure = query.exception()
    if failure is None:
        return None
    text = str(failure)
    if (error := error_from_text(text) or disk_full(text, settings.checkpoint_location)) is not None:
        return error
    return IncsnapError(f"The query failed: {_cause(text)}", "Read the log above, and start again. The offset is kept.")


def _cause(text: str) -> str:
    """Return the Python error in Spark's text. After it Spark prints the query with its offsets, which may be long."""
    python_error = text.partition("=== Streaming Query ===")[0]
    begin = python_error.rfind("Traceback (most recent call last)")
    return python_error[max(begin, 0) :].strip()[-2000:]
