"""Is every machine of the cluster ready for the job? Asked before its first batch, by a Spark job on all of them.

Each executor says which Python and which incsnap it has, whether it can read the files that the settings name, and
whether it sees the driver's checkpoint: it reads what the driver has written there, and the driver what it has written.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
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
_PLACE = re.compile(r"\(TID \d+\) \((\S+) executor (\S+?)\)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_NO_MODULE = re.compile(r"No module named '([^']+)'")
_OTHER_PYTHON = re.compile(r"different version: (\S+) than that in driver: (\S+?)[,\s]")

_INSTALL = (
    "Install the driver's incsnap in the same place on each machine, or send it along: `incsnap package FOLDER`, then"
    " spark.archives=FOLDER/incsnap.tar.gz#incsnap"
)


@dataclass(frozen=True, slots=True)
class _Question:
    """``root``: the job's folder in the checkpoint; ``store``: how it is reached in a bucket, as JSON with the secrets.
    ``token``: what the driver has written there. ``files``: setting and path of each file that tasks read."""

    root: str
    store: str = field(repr=False)
    token: str
    files: tuple[tuple[str, str], ...]


#: Of an executor: where it runs, its incsnap's version or why it has none, settings of files that it cannot read with
#: the reason, whether it has read the driver's token, and the name of what it has written or why it could not.
_Answer = tuple[str, str, list[tuple[str, str]], bool, str]


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
        said = f"{settings.checkpoint_location} cannot be written to: {shorten(error)}"
        return [Finding("checkpoint.location", said, "Give the job the right to write there")]
    try:
        _await_executors(context, patience)
        answers = _asked(context, question, patience)
        return _judged(answers, question, settings, files)
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


def _executors(context: SparkContext) -> int:
    """Those that have registered; the driver is told among them."""
    scala: Any = context._jsc.sc()
    try:
        if not scala.isStopped():
            return len(scala.statusTracker().getExecutorInfos()) - 1
    except (Py4JError, ConnectionError):
        pass
    said = f"{context.master} has refused the job, or does not answer"
    raise _NotReadyError(Finding("spark.master", said, REACHED))


def _await_executors(context: SparkContext, patience: float) -> None:
    """Until no more of them come. With dynamic allocation there may be none before there is work."""
    conf = context.getConf()
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    began = time.monotonic()
    seen, since = 0, began
    while time.monotonic() - since < _STEADY_SECONDS or not seen:
        if (now := _executors(context)) != seen:
            seen, since = now, time.monotonic()
        if not seen and time.monotonic() - began > patience:
            raise _NotReadyError(
                Finding("spark.master", f"{context.master} has given the job no executor in {patience:g} s", REACHED)
            )
        time.sleep(0.1)


def _asked(context: SparkContext, question: _Question, patience: float) -> list[_Answer]:
    """An answer of each executor: tasks go where there is room, so they are sent until all were met."""
    found: dict[str, _Answer] = {}
    for _ in range(_ROUNDS):
        slots = max(1, context.defaultParallelism)
        job = context.parallelize(range(slots), slots).mapPartitions(_look(question, _TASK_SECONDS))
        for answer in _collected(context, job.collect, patience):
            # One with something to tell is not replaced by one that has met no difficulty.
            found.setdefault(answer[0], answer)
        if len(found) >= _executors(context):
            break
    return list(found.values())


def _collected(context: SparkContext, collect: Callable[[], list[_Answer]], patience: float) -> list[_Answer]:
    """In a thread, as a job that waits for executors waits for ever."""
    result: list[list[_Answer]] = []
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
        said = f"{context.master} has not run a task in {patience:g} s"
        raise _NotReadyError(Finding("spark.master", said, REACHED))
    if failure:
        raise _NotReadyError(failed(str(failure[0]))) from failure[0]
    return result[0]


def failed(text: str) -> Finding:
    """Why no task could begin on some machine, of the text of Spark's error."""
    place = _PLACE.search(text)
    where = f"executor {place[2]} on {place[1]}" if place else "an executor"
    if program := _NO_PROGRAM.search(text):
        return Finding("workers' Python", f"{where} has no program {program[1]}", _INSTALL)
    if module := _NO_MODULE.search(text):
        return Finding("workers' Python", f"{where} has no Python module {module[1]}", _INSTALL)
    if other := _OTHER_PYTHON.search(text):
        said = f"{where} runs Python {other[1].strip('()')}, the driver {other[2].strip('()')}"
        return Finding("workers' Python", said, f"Both must be of one minor version. {_INSTALL}")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return Finding("executors", f"{where} cannot run a task: {shorten(lines[0] if lines else text, 300)}", _INSTALL)


def _look(question: _Question, seconds: float) -> Callable[[Iterable[int]], Iterator[_Answer]]:
    """The task. A function within a function is pickled whole: it must run, and tell, where there is no incsnap."""
    root, store, token, asked = question.root, question.store, question.token, question.files
    folder, mine = _FOLDER, __version__

    def look(_: Iterable[int]) -> Iterator[_Answer]:
        import os
        import socket
        import time
        import uuid

        time.sleep(seconds)
        place = f"{socket.gethostname()} (executor in {os.getcwd()})"
        unreadable = []
        for setting, path in asked:
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
        if incsnap.__version__ != mine:
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


def _judged(answers: Sequence[_Answer], question: _Question, settings: Settings, files: Files) -> list[Finding]:
    found: list[Finding] = []
    for place, version, unreadable, read, written in sorted(answers):
        if version != __version__:
            said = f"{place} has {version}, the driver incsnap {__version__}"
            found.append(Finding("workers' Python", said, _INSTALL))
            continue
        found += [
            Finding(
                setting,
                f"{place} cannot read {reason}",
                "Put the file there on each machine; or name it without a folder, send it along"
                " (spark.files=/path/to/it) and start the job in its folder",
            )
            for setting, reason in unreadable
        ]
        # What another machine has written to the same store is there at once; to another disk, never.
        if not read or not files.exists(written):
            why = written if written.startswith("cannot") else "it does not see what the driver writes there"
            found.append(
                Finding(
                    "checkpoint.location",
                    f"{place} does not share {settings.checkpoint_location} with the driver: {why}",
                    "Put it on a file system that all machines see under this name (NFS, s3a:, hdfs:, ...), with the"
                    " right to write for the user that executors run as",
                )
            )
    return found
