"""The SparkSession of `incsnap run`. A micro-batch costs 34 to 80 ms in it, and 200 to 300 ms with Spark's defaults.

A session of the user's own works too (`session_job.start`). The user then chooses these settings.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from incsnap.checkpoint.location import is_local
from incsnap.config.object_store import is_object_store
from incsnap.config.secrets import is_secret
from incsnap.config.settings import Settings
from incsnap.spark.store import local_files, object_logs, s3a
from incsnap.spark.worker_python import PROGRAM, interpreter

log = logging.getLogger(__name__)

#: The variable with the port of a JVM that this program was given. `spark-submit` sets it; the program then starts
#: none.
GIVEN_JVM = "PYSPARK_GATEWAY_PORT"
#: Properties that `spark-submit` has used before the program began: where the driver runs, and where its executors are.
_DECIDED = ("spark.master", "spark.submit.deployMode")

#: Properties for every kind of checkpoint. The user's own `spark.*` properties win over all of them.
_ALWAYS = {
    # Two slots for the stream and two for readers of chunks, which have a lower priority on the processor. A task is
    # tried four times; the default of local mode is once.
    "spark.master": "local[4,4]",
    "spark.app.name": "incsnap",
    # Only the job's user may read the files of the checkpoint that Spark writes.
    "spark.hadoop.fs.permissions.umask-mode": "077",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # one shuffle of a few binaries: nothing to adapt
    # A batch has a few rows, each megabytes. To generate code and to describe the plan costs each batch more than it
    # saves. With all four, p50 from commit to consumer falls from 160 to 141 ms, and p99 from 300 to 246 ms.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "200",
    "spark.locality.wait": "0",  # a worker on another machine has everything it needs too
    "spark.sql.streaming.pollingDelay": "5ms",  # the planner waits for the binlog, so Spark need not
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    # A block has megabytes. With the default of 10,000 rows an Arrow batch would collect gigabytes, in a vector that
    # grows by doubling. The limit of bytes ends a batch as soon as it has so many.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    "spark.shuffle.compress": "false",  # blocks are compressed already
    # After the loss of an executor, Spark compares a repeated task's output with its first output. If they differ and a
    # bucket was already sent, Spark ends the query. The outputs do differ, in the times of sending. A repeated batch
    # knows from its transactions which buckets were sent, so the comparison, which reads each block once more, is not
    # needed.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.shuffle.checksum.enabled": "false",
    # Spark allots this much for each task's closure of 20 KB, twice per batch. With the default of 4 MB the garbage
    # collector ran in every batch, for 6 ms.
    "spark.broadcast.blockSize": "64k",
    # Nothing reads these, and from the 1,000th on Spark sorts them in every batch.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.rpc.message.maxSize": "512",  # MiB; input partitions carry slices of the binlog
    "spark.redaction.regex": "(?i)secret|password|passphrase|token|access[.]?key",
    "spark.scheduler.mode": "FIFO",
    # The largest heap; Arrow's buffers outside of it may take as much again. A batch of 96 MiB in blocks of 8 MiB takes
    # 300 MB of heap. With a limit of 2 GB the collector would use 2 GB before it looks for garbage.
    "spark.driver.memory": "768m",
}
#: Options of the driver's JVM. The JVM moves blocks of megabytes and decides little. The second compiler's gain is
#: worth less than its processor time (a third of the JVM's time at 20 changes/s).
_JVM = (
    "-XX:TieredStopAtLevel=1",
    # A method is compiled after 20 calls, not 200. A batch calls each method once or twice, so a job would be half
    # interpreted in its first minutes. 20 s after its start a batch takes 50 ms instead of 72.
    "-XX:CompileThresholdScaling=0.1",
    # Room for the compiled code, of which only what is used takes memory. The default with one compiler is 48 MB. A
    # comparison of tables fills it within minutes, and then the JVM interprets all that is new.
    "-XX:ReservedCodeCacheSize=128m",
    # 45 MB are live. A heap that begins at a 64th of the machine's memory fills this memory before it looks for
    # garbage.
    "-Xms128m",
    # Each task leaves a thread that sleeps for 2 s (Spark's MonitorThread) and holds 70 kB, at 40 tasks a second.
    # Survivor spaces with room for these 5 MB keep the threads out of the old generation. Without them it was full
    # every 8 s, and a full collection takes 115 to 150 ms. The p99 fell from 168 to 124 ms when idle, and from 333 to
    # 292 ms beside a snapshot. A young collection takes 8 ms instead of 6.
    "-Xmn48m",
    "-XX:SurvivorRatio=4",
    "-XX:TargetSurvivorRatio=90",
    # A backlog has 160 to 220 MB live. With two fifths of the heap free after each full collection (the default) the
    # heap was 430 MB; with a fifth it is 350 MB.
    "-XX:MinHeapFreeRatio=20",
)
_FILE_SYSTEM = "spark.hadoop.fs.file.impl"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
#: Properties for a checkpoint on a local disk. For each file, the default manager forks several processes (110 to 200
#: ms for the commit log), this manager one (4 to 14 ms), and with `local_files` none (1 ms).
_LOCAL_CHECKPOINT = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    _FILE_SYSTEM: local_files.RAW,
}


#: Options of an executor's JVM, which does what the driver's JVM does on one machine. Its heap is
#: spark.executor.memory. At Spark's level it logs three lines per task, 60 a second with small batches. If a machine
#: has no file for log4j, any level but ERROR keeps log4j's own layout. A level that the driver sends (spark.log.level)
#: is lost in Spark 4.3.
_EXECUTORS_JVM = (*_JVM[:3], "-Dlog4j2.level=warn")
_EXECUTORS_PATH = "spark.executorEnv.PATH"
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: Properties on YARN. The path of a container's folder for temporary files is longer than a socket's path may be (107
#: bytes). A folder for all users of the machine is no place for sockets without a password.
_YARN = {"spark.python.unix.domain.socket.enabled": "false"}


def properties(settings: Settings, submitted_properties: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return Spark's properties for the job.

    The settings file wins over `submitted_properties`, which come from `spark-submit`, and those win over our own. This
    is Spark's order for every program. Only where the driver runs is fixed: `spark-submit` has decided that already.
    """
    chosen = dict(_ALWAYS)
    # These stand before the user's `spark.driver.extraJavaOptions`: the JVM takes the last value of an option.
    given = submitted_properties or {}
    users = {**given, **settings.spark}
    options = [f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}", *_JVM]
    chosen["spark.driver.defaultJavaOptions"] = _with_collector(options, users.get("spark.driver.extraJavaOptions"))
    if is_local(settings.checkpoint_location):
        chosen.update(_LOCAL_CHECKPOINT)
    decided = {name: given[name] for name in _DECIDED if name in given}
    if {**users, **decided}.get("spark.master") == "yarn":
        chosen.update(_YARN)
    chosen.update(users)
    if is_object_store(settings.checkpoint_location):
        chosen.update(s3a.properties(settings))
    for name, value in decided.items():
        if chosen[name] != value:
            log.warning("%s=%s of the settings has no effect: spark-submit was given %s", name, chosen[name], value)
            chosen[name] = value
    if not is_one_machine(chosen):
        executors = _with_collector(_EXECUTORS_JVM, users.get("spark.executor.extraJavaOptions"))
        chosen.setdefault("spark.executor.defaultJavaOptions", executors)
        # A dead executor's shuffle files are gone. Spark asks for them three times, by default 5 s apart.
        chosen.setdefault("spark.shuffle.io.retryWait", "1s")
        if (folder := archive_folder(chosen)) and _EXECUTORS_PATH not in chosen:
            chosen[_EXECUTORS_PATH] = f"./{folder}/bin:{_USUAL_PATH}"
    return chosen


def submitted() -> dict[str, str]:
    """Return the properties of `spark-submit`'s command line and of `spark-defaults.conf`.

    Return {} if `spark-submit` has not started this program.
    """
    if GIVEN_JVM not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf(_jvm=SparkContext._jvm).getAll())


def _with_collector(options: Sequence[str], users: str | None) -> str:
    """Return `options` and our garbage collector, unless `users` name one.

    With two collectors the JVM refuses to start.
    """
    return " ".join((*options, *(() if _COLLECTOR.search(users or "") else ("-XX:+UseSerialGC",))))


def prepare(spark: Mapping[str, str], python: str) -> None:
    """Set the environment that the JVM and its Python workers inherit. `python`: the program that workers run."""
    os.environ["PYSPARK_PYTHON"] = python
    # Spark runs this program to look up data sources.
    os.environ["PYSPARK_DRIVER_PYTHON"] = python
    # Without this limit the C library keeps freed memory in up to eight arenas per processor, for the JVM's threads.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    if is_one_machine(spark):
        # Spark then uses loopback only, and does not warn about the machine's name.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    elif os.sep not in python:
        # The planner is a worker on the driver's machine, and Spark runs all workers by one name. Here that name must
        # find our interpreter.
        folder = str(Path(interpreter()).parent)
        if os.environ.get("PATH", "").split(os.pathsep)[0] != folder:
            os.environ["PATH"] = os.pathsep.join((folder, os.environ.get("PATH", _USUAL_PATH)))


def workers_python(spark: Mapping[str, str]) -> str:
    """Return the program that workers run as `python`.

    On one machine this is our own interpreter, which starts warm. On a cluster the user's choice comes first
    (`spark.pyspark.python`, `PYSPARK_PYTHON`), then the program of an archive that is sent along, then the driver's
    path.
    """
    if is_one_machine(spark):
        return interpreter()
    named = spark.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    return named or (PROGRAM if archive_folder(spark) else interpreter())


def archive_folder(spark: Mapping[str, str]) -> str | None:
    """Return the folder, below their own, into which executors unpack the first archive; None without archives."""
    for name in ("spark.archives", "spark.yarn.dist.archives"):
        for archive in filter(None, (each.strip() for each in spark.get(name, "").split(","))):
            path, _, folder = archive.partition("#")
            return folder or path.rpartition("/")[2]
    return None


def is_one_machine(spark: Mapping[str, str]) -> bool:
    """Return True if tasks run in the driver's JVM, and their workers beside it."""
    return spark["spark.master"].startswith("local")


def session_with(spark: Mapping[str, str]) -> SparkSession:
    """Return a session with these properties. The environment must be prepared (`prepare`)."""
    # PySpark starts the JVM if there is none, with properties on its command line. Every user of the machine can read a
    # command line. Secrets are given to the session later, which is early enough.
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(without_secrets(spark).items())))
    builder = SparkSession.builder
    for name, value in spark.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if spark.get(_FILE_SYSTEM) == local_files.RAW:
        local_files.use(session)
    if s3a.MARK in spark and object_logs.PROPERTY not in spark:
        object_logs.use(session)
    return session


def without_secrets(spark: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that may stand on a command line."""
    return {name: value for name, value in spark.items() if not is_secret(name)}
