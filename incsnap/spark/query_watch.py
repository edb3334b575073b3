"""The watch over a job: over all queries of `incsnap run`, or over the one query in a program's own session."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import is_local
from incsnap.checkpoint.progress import read_progress
from incsnap.checkpoint.spare_status import SparedStatus, Store
from incsnap.checkpoint.status_file import SharedStatus
from incsnap.config.explained import Explained
from incsnap.config.secrets import without_password
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, IncsnapError, ServerAway, shorten
from incsnap.monitoring.job_status import Watch, failure_of
from incsnap.monitoring.outages import KAFKA, MYSQL, REGISTRY, Outages
from incsnap.monitoring.status import FAILED, STOPPED, Sums
from incsnap.mysql.session import close, connect
from incsnap.tasks.error_text import error_from_text
from signals.send import new_id

log = logging.getLogger(__name__)

#: Seconds between two writes of the status file to a store where each write is paid for.
_FAR_SECONDS = 10.0
#: Most seconds that MySQL may take to let a question in.
_ASK_SECONDS = 5.0


@contextmanager
def watching(settings: Settings, root: str, explained: Sequence[Explained] = ()) -> Iterator[Watch]:
    """Watch a job during the block. At the end the status file says that the job stopped, or which error ended it.

    `root`: the job's folder in the checkpoint. `explained`: the settings as the page shows them. Raise ConfigError if
    `incsnap.metrics.port` is taken, or if `incsnap.status.group` may not have the status file.
    """
    with ExitStack() as stack:
        yield begin_watch(settings, root, explained, stack)


def end_with(query: StreamingQuery, watch: Watch, stack: ExitStack) -> None:
    """Close `watch` and `stack` in a thread of their own when the query ends, for whatever reason.

    The status file then says that the job stopped, or which error ended it. `stack` has what must live as long as the
    query: the lock of the checkpoint, the server of the metrics, the start.
    """

    def end() -> None:
        failure = None
        with suppress(Py4JError, ConnectionError):
            failure = query.exception()
        if failure is None:
            watch.close(STOPPED)
        else:
            watch.close(FAILED, failure_of(error_from_text(str(failure)) or IncsnapError(shorten(failure))))
        stack.close()

    call_at_end(query, end)


def call_at_end(query: StreamingQuery, end: Callable[[], None]) -> None:
    """Call `end` once the query has ended, whether it stopped or failed. A thread of its own waits for that."""

    def wait() -> None:
        # PySpark raises AttributeError for a context that was stopped.
        with suppress(PySparkException, Py4JError, ConnectionError, AttributeError):
            query.awaitTermination()
        end()

    threading.Thread(target=wait, name="incsnap-query-end", daemon=True).start()


def begin_watch(settings: Settings, root: str, explained: Sequence[Explained], stack: ExitStack) -> Watch:
    """Return a watch, which writes a job's status file, and start the job's page and metrics at `incsnap.metrics.port`.

    `root`: the job's folder in the checkpoint. `explained`: the settings as the page shows them. Closing `stack` ends
    both; the status file then says that the job stopped, or which error ended the block of `stack`. Raise ConfigError
    if the port is taken.
    """
    every = 1.0 if is_local(settings.checkpoint_location) else _FAR_SECONDS
    group = settings.monitoring.status_group
    store: Store = SharedStatus(settings.checkpoint_location, root, group) if group else Files(root)
    if is_local(settings.checkpoint_location):
        store = SparedStatus(store, root)
    registries = {settings.formats.key_registry.url, settings.formats.value_registry.url} - {""}
    addresses = {
        MYSQL: settings.mysql.address,
        KAFKA: settings.kafka.bootstrap_servers,
        REGISTRY: without_password(", ".join(sorted(registries))),
    }
    outages = Outages(addresses, partial(_why_mysql_is_away, settings))
    sums = _sums_of(root, 0.0 if every <= 1.0 else every)
    watch = Watch(settings.topic_prefix, store, sums, every, outages=outages)

    def close(kind: object, error: BaseException | None, trace: object) -> None:
        watch.close(STOPPED if error is None else FAILED, None if error is None else failure_of(error))

    stack.push(close)
    if settings.monitoring.port is not None:
        # Imported only if it is used: the module takes 4 MB.
        from incsnap.monitoring.http_server import StatusServer

        send = partial(_send_new_signal, settings)
        server = StatusServer(settings.monitoring, watch.status, watch.history, explained, send)
        stack.callback(server.close)
        log.info("Metrics and page of %s are at http://%s:%d", settings.topic_prefix, *server.address)
    return watch


def _why_mysql_is_away(settings: Settings) -> str:
    """Return why MySQL does not answer; "" if it answers, if only with a refusal."""
    seconds = min(settings.mysql.connect_timeout_seconds, _ASK_SECONDS)
    server = settings.mysql.model_copy(update={"connect_timeout_seconds": seconds})
    try:
        close(connect(server, read_timeout=_ASK_SECONDS))
    except ServerAway as error:
        return error.message.rpartition("does not answer: ")[2]
    except IncsnapError:
        return ""
    return ""


def _send_new_signal(settings: Settings, kind: str, data: dict[str, Any]) -> tuple[str, Sequence[str]]:
    """Send a signal to the job. Return the signal's id, and warnings about its tables, as `incsnap signal` prints them.

    Raise ConfigError if no table can be read. Other errors: see `send_signal`.
    """
    from incsnap.monitoring.signal_sender import send_signal
    from incsnap.monitoring.signalled_tables import table_warnings
    from incsnap.planner.online_ddl import online_tables_at_newest

    tables, warnings = data.get("data-collections"), []
    if isinstance(tables, list) and tables and all(isinstance(each, str) for each in tables):
        checked = table_warnings(settings, kind, tables, partial(online_tables_at_newest, settings))
        if checked.is_useless:
            why = "; ".join(each.problem for each in checked.findings)
            repair = "; ".join(each.repair for each in checked.findings) or "Correct the names of the tables."
            raise ConfigError(f"The signal was not sent: it names no table that can be read ({why})", repair)
        warnings = [f"{each.problem}. {each.repair}" for each in checked.findings]
        warnings += [checked.unchecked] if checked.unchecked else []
    name = new_id()
    send_signal(settings, name, kind, data)
    return name, warnings


def _sums_of(root: str, every_seconds: float) -> Callable[[], Sums]:
    """Return a function that returns the counters of committed batches, read at most once in `every_seconds`."""
    newest, next_read = Sums(), 0.0

    def sums() -> Sums:
        nonlocal newest, next_read
        if time.monotonic() >= next_read:
            progress = read_progress(root)
            next_read = time.monotonic() + every_seconds
            newest = Sums(**{each.name: getattr(progress, each.name) for each in fields(Sums)})
        return newest

    return sums
