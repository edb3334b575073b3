"""The check that every machine of a cluster is ready for the job: a Spark job on all executors, before the first batch.

Each executor answers three questions: which Python and which incsnap it has, whether it can read the files that the
settings name, and whether it shares the driver's checkpoint. For the last one the executor reads a file of the driver,
and the driver looks for a file of the executor.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.config.settings import Settings
from incsnap.errors import PreflightFailed, StoreFailed, shorten
from incsnap.mysql.server_rules import Finding
from incsnap.spark.cluster.machine_answers import Answer, findings_of, task_failure
from incsnap.version import __version__

#: Most seconds for an executor to come, and for all executors to answer.
PATIENCE_SECONDS = 120.0
#: Seconds that each task takes at least. So every slot of every executor gets a task before another slot is free again.
_TASK_SECONDS = 0.5
#: Seconds without a new executor, after which no other is waited for.
_STEADY_SECONDS = 1.0
_ROUNDS = 5
#: The hint if no executor comes.
REACHED = (
    "Check the address, and that machines have spark.executor.cores and spark.executor.memory free. Check that they"
    " reach the driver (spark.driver.host, spark.driver.port), and read the executors' logs"
)
_FOLDER = "machines"
_GROUP = "incsnap machines"


@dataclass(frozen=True, slots=True)
class _Question:
    """The question that each executor answers."""

    root: str  #: the job's folder in the checkpoint
    store: str = field(repr=False)  #: access to the object store that holds the folder, as JSON with the secrets
    token: str  #: content and name of the driver's file
    files: tuple[tuple[str, str], ...]  #: (setting, path) of each file that tasks read


def require_machines(spark: SparkSession, settings: Settings) -> None:
    """Raise PreflightFailed if machines of a cluster are not ready. A job on one machine needs no check."""
    context = spark.sparkContext
    if not str(context.master).startswith("local") and (findings := machine_findings(context, settings)):
        lines = "".join(f"\n  {each}" for each in findings)
        raise PreflightFailed(f"The cluster's machines are not ready:{lines}")


def machine_findings(context: SparkContext, settings: Settings, patience: float = PATIENCE_SECONDS) -> list[Finding]:
    """Return the findings about machines that are not ready, each with the machine's name.

    The check writes to the checkpoint and deletes its files again. `patience`: in seconds.
    """
    root = own_part(settings.checkpoint_location)
    store = settings.store.model_dump_json(context={"reveal": True})
    question = _Question(root, store, uuid.uuid4().hex, tuple(files_of_tasks(settings)))
    files = Files(root)
    driver = f"{_FOLDER}/{question.token}"
    try:
        files.write(driver, question.token.encode())
    except (OSError, StoreFailed) as error:
        problem = f"{settings.checkpoint_location} cannot be written to: {shorten(error)}"
        return [Finding("checkpoint.location", problem, "Give the job the right to write there")]
    try:
        _await_executors(context, patience)
        answers = _answers(context, question, patience)
        return findings_of(answers, settings.checkpoint_location, files)
    except _NotReadyError as error:
        return [error.finding]
    finally:
        with suppress(OSError, StoreFailed):
            files.delete_folder(_FOLDER)


def files_of_tasks(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield (setting, path) of each file that a task opens: certificates, keys, key tables."""
    mysql = settings.mysql
    for name, path in (("database.ssl.truststore", mysql.ssl_ca), ("database.ssl.keystore", mysql.ssl_cert)):
        if path:
            yield name, path
    clients = {
        "producer.": settings.kafka.producer,
        "key.converter.": settings.formats.key_registry.client,
        "value.converter.": settings.formats.value_registry.client,
    }
    for prefix, client in clients.items():
        for name, value in client.items():
            if name.endswith((".location", ".keytab")) and value != "probe":
                yield prefix + name, value


class _NotReadyError(Exception):
    """An error: the cluster gives no answer; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def _executor_count(context: SparkContext) -> int:
    """Return how many executors have registered, without the driver that Spark lists among them.

    Raise _NotReadyError.
    """
    scala: Any = context._jsc.sc()
    try:
        if not scala.isStopped():
            return len(scala.statusTracker().getExecutorInfos()) - 1
    except (Py4JError, ConnectionError):
        pass
    problem = f"{context.master} has refused the job, or does not answer"
    raise _NotReadyError(Finding("spark.master", problem, REACHED))


def _await_executors(context: SparkContext, patience: float) -> None:
    """Wait until no more executors come. With dynamic allocation return at once: executors may come only with work.

    Raise _NotReadyError if none comes within `patience` seconds.
    """
    conf = context.getConf()
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    began = time.monotonic()
    count, since = 0, began
    while time.monotonic() - since < _STEADY_SECONDS or not count:
        if (new_count := _executor_count(context)) != count:
            count, since = new_count, time.monotonic()
        if not count and time.monotonic() - began > patience:
            raise _NotReadyError(
                Finding("spark.master", f"{context.master} has given the job no executor in {patience:g} s", REACHED)
            )
        time.sleep(0.1)


def _answers(context: SparkContext, question: _Question, patience: float) -> list[Answer]:
    """Return the first answer of each executor.

    Spark places tasks where it has room, so repeat until all have answered.
    """
    answers: dict[str, Answer] = {}
    for _ in range(_ROUNDS):
        slots = max(1, context.defaultParallelism)
        job = context.parallelize(range(slots), slots).mapPartitions(_looking(question, _TASK_SECONDS))
        for answer in _collected(context, job.collect, patience):
            answers.setdefault(answer[0], answer)
        if len(answers) >= _executor_count(context):
            break
    return list(answers.values())


def _collected(context: SparkContext, collect: Callable[[], list[Answer]], patience: float) -> list[Answer]:
    """Run the job in a thread, because a job without executors waits for ever. Raise _NotReadyError."""
    done: Future[list[Answer]] = Future()

    def run() -> None:
        try:
            context.setJobGroup(_GROUP, "incsnap: are the machines ready?", True)
            done.set_result(collect())
        except Exception as error:  # noqa: BLE001 - raised below, in the caller's thread
            done.set_exception(error)

    InheritableThread(target=run, daemon=True).start()
    if wait([done], patience).not_done:
        with suppress(Py4JError, PySparkException, ConnectionError):
            context.cancelJobGroup(_GROUP)
        problem = f"{context.master} has not run a task in {patience:g} s"
        raise _NotReadyError(Finding("spark.master", problem, REACHED))
    try:
        return done.result()
    except Exception as error:
        raise _NotReadyError(task_failure(str(error))) from error


def _looking(question: _Question, seconds: float) -> Callable[[Iterable[int]], Iterator[Answer]]:
    """Return the task's function. It is a nested function, which is pickled whole: it must also run without incsnap."""
    root, store, token, paths = question.root, question.store, question.token, question.files
    folder, own_version = _FOLDER, __version__

    def look(_: Iterable[int]) -> Iterator[Answer]:
        import os
        import socket
        import time
        import uuid

        time.sleep(seconds)
        place = f"{socket.gethostname()} (executor in {os.getcwd()})"
        unreadable = []
        for setting, path in paths:
            try:
                with open(path, "rb"):
                    pass
            except OSError as error:
                unreadable.append((setting, f"{path}: {error.strerror}"))
        try:
            import incsnap
            from incsnap.checkpoint.files import Files
            from incsnap.checkpoint.object_store import set_access
            from incsnap.config.object_store import StoreAccess
            from incsnap.errors import IncsnapError
        except ImportError as error:
            return iter([(place, f"no incsnap: {error}", unreadable, False, "")])
        if incsnap.__version__ != own_version:
            return iter([(place, incsnap.__version__, unreadable, False, "")])
        set_access(root, StoreAccess.model_validate_json(store))
        files, written = Files(root), f"{folder}/{uuid.uuid4().hex}"
        try:
            content = files.read(f"{folder}/{token}")
            read = content is not None and content.to_pybytes() == token.encode()
        except (OSError, IncsnapError):
            read = False
        try:
            files.write(written, token.encode())
        except (OSError, IncsnapError) as error:
            written = f"cannot write: {error}"
        return iter([(place, incsnap.__version__, unreadable, read, written)])

    return look
