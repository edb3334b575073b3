"""The job in the foreground: it is started again after failures that pass, and stopped by a signal of the system."""

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
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.lock import CheckpointLock, checkpoint_lock
from incsnap.checkpoint.object_store import reach
from incsnap.config.explained import Explained
from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError, ServerUnreachable, SinkError, shorten
from incsnap.monitoring.status import RETRYING, STOPPING
from incsnap.monitoring.watch import failure_of
from incsnap.spark.error_text import error_from_text
from incsnap.spark.job import Run, start, stop
from incsnap.spark.prefix_start import PrefixStart
from incsnap.spark.starting import Starting
from incsnap.spark.watching import watching

log = logging.getLogger(__name__)

#: A run of the query that lasts so long has overcome what ended those before it.
_LASTING_SECONDS = 60.0


class SparkDied(IncsnapError):
    hint = "See the log above; was it out of memory (spark.driver.memory)? Start again: the offset is kept."
    resumable = False


def run_forever(
    settings: Settings,
    starting: Starting,
    explained: Sequence[Explained] = (),
    ask: Callable[[SparkSession], None] = lambda spark: None,
    *,
    replace_job: bool = False,
) -> None:
    """Runs the job in the foreground until SIGINT or SIGTERM, which stop it at a batch boundary, or until it ends by
    itself (``snapshot.mode=initial_only``).

    A failure that may pass (a server that is away) starts it again from the same offset, after a growing pause
    (``errors.retry.delay.*``); any other is raised: ``ConfigError`` when another job has the checkpoint,
    ``PrefixTaken`` when another start has the ``topic.prefix``, or takes it. ``explained``: the settings as the page
    shows them. ``ask``: called with the session before the first query. ``replace_job``: see ``job.start``.
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
        root = own_part(settings.checkpoint_location)
        reach(settings.checkpoint_location, settings.store)
        with (
            checkpoint_lock(settings.checkpoint_location, root) as lock,
            watching(settings, root, explained) as watch,
            contextlib.closing(PrefixStart(settings, replace_job=replace_job)) as prefix,
        ):
            # While the JVM boots, where the control topic is there. A server that is away for the moment is asked
            # again before the first query.
            with contextlib.suppress(ServerUnreachable, SinkError):
                prefix.ensure()
            spark = starting.session()
            # PySpark has taken it: its handler cancels the jobs and raises KeyboardInterrupt in the middle of anything.
            signal.signal(signal.SIGINT, ask_to_stop)
            try:
                ask(spark)
                _supervise(spark, settings, stopping, starting.keep, Run(watch, prefix, uuid4().hex), lock)
            finally:
                prefix.close()
                with contextlib.suppress(Py4JError, ConnectionError):  # there is no JVM any more, which is told
                    spark.stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _supervise(
    spark: SparkSession,
    settings: Settings,
    stopping: threading.Event,
    ready: Callable[[], None],
    run: Run,
    lock: CheckpointLock,
) -> None:
    """Run one query after the other. ``ready`` is called before each; ``lock``: of the checkpoint, which none may go on
    without."""
    retries, watch = settings.retries, run.watch
    failures, delay = 0, retries.initial_delay_ms / 1000
    while not stopping.is_set():
        began = time.monotonic()
        try:
            ready()
            query = start(spark, settings, run)
            log.info("Streaming to topics %s%s*", settings.topic_prefix, settings.topic_delimiter)
            while query.isActive and not stopping.wait(0.2):
                _stop_where_lost(query, lock.refuse_if_lost, run.prefix.refuse_if_taken)
                if time.monotonic() - began > _LASTING_SECONDS:
                    watch.recovered()
            if query.isActive:
                watch.enter(STOPPING)
                stop(query, settings)
            error = _failure(query)
            if error is None:
                log.info("Stopped")
                return
        except IncsnapError as failure:
            error = failure
        except (Py4JError, ConnectionError) as failure:
            raise SparkDied(f"Spark's JVM does not answer any more: {shorten(failure)}") from None
        error = run.prefix.cause_of(error)
        if time.monotonic() - began > _LASTING_SECONDS:
            failures, delay = 0, retries.initial_delay_ms / 1000
        failures += 1
        if not error.resumable or (0 <= retries.max_retries < failures):
            raise error
        next_try_ms = round((time.time() + delay) * 1000)
        watch.enter(RETRYING, failure_of(error, failures, next_try_ms))
        log.warning("%s; started again in %.1f s (failure %d)", error.message, delay, failures)
        stopping.wait(delay)
        run.prefix.refuse_if_taken()
        delay = min(delay * 2, retries.max_delay_ms / 1000)


def _stop_where_lost(query: StreamingQuery, *rights: Callable[[], None]) -> None:
    """Raise what one of ``rights`` raises, when the query has ended: nothing is committed any more."""
    try:
        for refuse in rights:
            refuse()
    except IncsnapError:
        query.stop()
        raise


def _failure(query: StreamingQuery) -> IncsnapError | None:
    """Why the query ended by itself; Spark gives nothing but a text."""
    failure = query.exception()
    if failure is None:
        return None
    return error_from_text(str(failure)) or IncsnapError(
        f"The query failed: {_cause(str(failure))}", "Look at the log above; the offset is kept."
    )


def _cause(text: str) -> str:
    """The Python error in Spark's text. Behind it Spark prints the query with its offsets, which may be long."""
    python_error = text.partition("=== Streaming Query ===")[0]
    begin = python_error.rfind("Traceback (most recent call last)")
    return python_error[max(begin, 0) :].strip()[-2000:]
