"""Is every machine of the cluster ready for the job? Asked before its first batch, by a Spark job on all of them.

Each executor says which Python and which incsnap it has, whether it can read the files that the settings name, and
whether it sees the driver's checkpoint: it reads what the driver has written there, and the driver what it has written.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException

from incsnap import __version__
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.config.settings import Settings
from incsnap.errors import StoreFailed, shorten
from incsnap.mysql.server_rules import Finding
from incsnap.spark.machine_answers import Answer, findings_of, task_failure

#: Seconds for an executor to come, and for all that have come to answer.
PATIENCE_SECONDS = 120.0
#: All slots of all executors are to have a task, so none may be free again before the others have theirs.
_TASK_SECONDS = 0.5
#: Seconds without a new executor after which no other is waited for.
_STEADY_SECONDS = 1.0
_ROUNDS = 5
#: What may be wrong where no executor comes.
REACHED = (
    "Look whether the address is right, whether there are machines with spark.executor.cores and spark.executor.memory"
    " free, whether they reach the driver (spark.driver.host, spark.driver.port), and what the executors log"
)
_FOLDER = "machines"
_GROUP = "incsnap machines"


@dataclass(frozen=True, slots=True)
class _Question:
    """``root``: the job's folder in the checkpoint; ``store``: how it is reached in a bucket, as JSON with the secrets.
    ``token``: what the driver has written there. ``files``: setting and path of each file that tasks read."""

    root: str
    store: str = field(repr=False)
    token: str
    files: tuple[tuple[str, str], ...]


def machine_findings(context: SparkContext, settings: Settings, patience: float = PATIENCE_SECONDS) -> list[Finding]:
    """What is not ready, each with the machine's name. Writes to the checkpoint and takes that away again."""
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
    """Setting and path of each file that a task opens: certificates, keys, key tables."""
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
    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def _executor_count(context: SparkContext) -> int:
    """How many have registered; Spark lists the driver among them. Raises ``_NotReadyError``."""
    scala: Any = context._jsc.sc()
    try:
        if not scala.isStopped():
            return len(scala.statusTracker().getExecutorInfos()) - 1
    except (Py4JError, ConnectionError):
        pass
    problem = f"{context.master} has refused the job, or does not answer"
    raise _NotReadyError(Finding("spark.master", problem, REACHED))


def _await_executors(context: SparkContext, patience: float) -> None:
    """Waits until no more of them come. With dynamic allocation there may be none before there is work."""
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
    """The first answer of each executor. Tasks go where there is room, so they are sent until all have answered."""
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
    """Runs the job in a thread, as one that waits for executors waits for ever. Raises ``_NotReadyError``."""
    result: list[list[Answer]] = []
    failure: list[Exception] = []

    def run() -> None:
        context.setJobGroup(_GROUP, "incsnap: are the machines ready?", True)
        try:
            result.append(collect())
        except Exception as error:  # noqa: BLE001 - looked at below, on the thread that asked
            failure.append(error)

    thread = InheritableThread(target=run, daemon=True)
    thread.start()
    thread.join(patience)
    if thread.is_alive():
        with suppress(Py4JError, PySparkException, ConnectionError):
            context.cancelJobGroup(_GROUP)
        problem = f"{context.master} has not run a task in {patience:g} s"
        raise _NotReadyError(Finding("spark.master", problem, REACHED))
    if failure:
        raise _NotReadyError(task_failure(str(failure[0]))) from failure[0]
    return result[0]


def _looking(question: _Question, seconds: float) -> Callable[[Iterable[int]], Iterator[Answer]]:
    """Makes the task. A function within a function is pickled whole: it must run and answer without an incsnap too."""
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
            from incsnap.checkpoint.object_store import reach
            from incsnap.config.object_store import StoreAccess
            from incsnap.errors import IncsnapError
        except ImportError as error:
            return iter([(place, f"no incsnap: {error}", unreadable, False, "")])
        if incsnap.__version__ != own_version:
            return iter([(place, incsnap.__version__, unreadable, False, "")])
        reach(root, StoreAccess.model_validate_json(store))
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
