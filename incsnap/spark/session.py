"""The SparkSession of `incsnap run`: Spark's own defaults cost 200-300 ms a micro-batch, these 34-80 ms.

A session of the user's own works too (``job.start``); then these settings are theirs to make.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import SparkSession

from incsnap.checkpoint.location import is_local
from incsnap.config.object_store import is_object_store
from incsnap.config.settings import Settings
from incsnap.spark import local_files, object_logs, s3a
from incsnap.spark.submitted import decided, submitted
from incsnap.spark.worker_python import PROGRAM, interpreter

log = logging.getLogger(__name__)

NONE: Mapping[str, str] = MappingProxyType({})

#: What holds wherever the checkpoint lies. Users' own ``spark.*`` properties win over all of them.
_ALWAYS = {
    # Two slots for the stream and two for readers of chunks, who give way on the processor; a task is tried four times
    # (local mode's default is once).
    "spark.master": "local[4,4]",
    "spark.app.name": "incsnap",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # one shuffle of a few binaries: nothing to adapt
    # A batch has a handful of rows, each megabytes: code made for them, and texts that describe its plan, cost every
    # batch more than they save (all four together: p50 from commit to consumer 160 to 141 ms, p99 300 to 246).
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "200",
    "spark.locality.wait": "0",  # a worker on another machine has all it needs as well
    "spark.sql.streaming.pollingDelay": "5ms",  # the planner itself waits for the binlog; Spark need not
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    # Blocks are megabytes each: the default of 10,000 rows a batch would collect gigabytes on the way, and a batch's
    # vector grows by doubling. Of bytes: as soon as a batch has so many.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    "spark.shuffle.compress": "false",  # blocks are compressed already
    # Where an executor dies, Spark compares what the repeated task wrote with what it wrote before, and ends the query
    # where they differ and a bucket is sent: they do, in the times of sending alone. A repeated batch knows by its
    # transactions which buckets are sent, so nothing is to be compared, nor each block read for it once more.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.shuffle.checksum.enabled": "false",
    # What Spark allots for each task's closure of 20 KB, twice a batch: of the default, 4 MB, the collector was called
    # in every batch, for 6 ms.
    "spark.broadcast.blockSize": "64k",
    # Nobody looks at them, and from the 1,000th on they are sorted in every batch.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.rpc.message.maxSize": "512",  # MiB: input partitions carry slices of the binlog
    "spark.redaction.regex": "(?i)secret|password|passphrase|token|access[.]?key",
    "spark.scheduler.mode": "FIFO",
    # What the heap may grow to, and Arrow's buffers outside of it as much again. A batch of 96 MiB in blocks of 8 takes
    # 300 MB of it; a collector that may have 2 GB uses them before it looks for garbage.
    "spark.driver.memory": "768m",
}
#: The JVM moves blocks of megabytes and decides little: what its second compiler makes of that is worth less than the
#: processor time it takes (a third of the JVM's at 20 changes/s).
_JVM = (
    "-XX:TieredStopAtLevel=1",
    # Compiled when it was called 20 times, not 200: a batch goes through each method once or twice, so a job would be
    # half interpreted for its first minutes (20 s after its start a batch takes 50 ms instead of 72).
    "-XX:CompileThresholdScaling=0.1",
    # 45 MB live. A heap that begins at a 64th of the machine's memory fills that before it looks for garbage.
    "-Xms128m",
    # Each task leaves a thread that sleeps for 2 s (Spark's MonitorThread) and holds 70 kB of it, 40 tasks a second.
    # Survivor spaces that have room for these 5 MB, until they die, keep them out of the old generation, which was full
    # of them every 8 s, and a full collection takes 115 to 150 ms: idle p99 168 ms, now 124; beside a snapshot 333 and
    # 292. A young collection takes 8 ms instead of 6.
    "-Xmn48m",
    "-XX:SurvivorRatio=4",
    "-XX:TargetSurvivorRatio=90",
    # A backlog has 160 to 220 MB live. Two fifths of the heap free behind each full collection (the default) made it
    # 430 MB; a fifth makes it 350.
    "-XX:MinHeapFreeRatio=20",
)
_FILE_SYSTEM = "spark.hadoop.fs.file.impl"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
#: Only for a checkpoint on a local disk: the default manager forks several processes for each file it writes
#: (commit log 110-200 ms against 4-14 ms), this one a single one, and ``local_files`` none (1 ms).
_LOCAL_CHECKPOINT = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    _FILE_SYSTEM: local_files.RAW,
}


#: Only on a cluster.
_CLUSTER = {
    # Nobody is at the other end of what a dead executor has left: Spark asks three times, by default 5 s apart.
    "spark.shuffle.io.retryWait": "1s",
}
#: An executor's JVM does what the driver's does on one machine; its heap is spark.executor.memory's. At Spark's level
#: it tells of each task in three lines, 60 a second with small batches. With a level other than ERROR log4j's own form
#: stays where machines have no file for it; a level that the driver sends (spark.log.level) is lost in 4.3.
_EXECUTORS_JVM = (*_JVM[:2], "-Dlog4j2.level=warn")
_EXECUTORS_PATH = "spark.executorEnv.PATH"
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: Only on YARN, whose containers have a folder for temporary files of their own: its path is longer than that of a
#: socket may be (107 bytes), and one for all users of a machine is not for sockets that ask for no password.
_YARN = {"spark.python.unix.domain.socket.enabled": "false"}


def properties(settings: Settings, submitted_properties: Mapping[str, str] = NONE) -> dict[str, str]:
    """Spark's properties of the job: ours, over them ``submitted_properties``, which are those of ``spark-submit``, and
    over these the file's, as Spark has it for any program. Where the driver runs, ``spark-submit`` has decided already.
    """
    chosen = dict(_ALWAYS)
    # Before the user's `spark.driver.extraJavaOptions`: of two values of an option the JVM takes the last.
    users = {**submitted_properties, **settings.spark}
    options = [f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}", *_JVM]
    chosen["spark.driver.defaultJavaOptions"] = _with_collector(options, users.get("spark.driver.extraJavaOptions"))
    if is_local(settings.checkpoint_location):
        chosen.update(_LOCAL_CHECKPOINT)
    if {**users, **decided(submitted_properties)}.get("spark.master") == "yarn":
        chosen.update(_YARN)
    chosen.update(submitted_properties)
    chosen.update(settings.spark)
    if is_object_store(settings.checkpoint_location):
        chosen.update(s3a.properties(settings))
    for name, value in decided(submitted_properties).items():
        if chosen[name] != value:
            log.warning("%s=%s of the settings has no effect: spark-submit was told %s", name, chosen[name], value)
            chosen[name] = value
    if not is_one_machine(chosen):
        executors = _with_collector(_EXECUTORS_JVM, users.get("spark.executor.extraJavaOptions"))
        chosen = {**_CLUSTER, "spark.executor.defaultJavaOptions": executors, **chosen}
        if (folder := archive_folder(chosen)) and _EXECUTORS_PATH not in chosen:
            chosen[_EXECUTORS_PATH] = f"./{folder}/bin:{_USUAL_PATH}"
    return chosen


def _with_collector(options: Sequence[str], users: str | None) -> str:
    """``options`` and our collector, unless the user's name one: with two the JVM refuses to start."""
    return " ".join((*options, *(() if _COLLECTOR.search(users or "") else ("-XX:+UseSerialGC",))))


def prepare(spark: Mapping[str, str], python: str) -> None:
    """The environment that the JVM and its Python workers inherit. ``python``: what workers run."""
    os.environ["PYSPARK_PYTHON"] = python
    # Spark takes this one for its look-up of data sources.
    os.environ["PYSPARK_DRIVER_PYTHON"] = python
    # Else the C library keeps what each of a JVM's threads has freed, in as many as eight arenas for each processor.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    if is_one_machine(spark):
        # Loopback only, and no warning about the machine's name.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    elif os.sep not in python:
        # The planner is a worker too, of the driver's machine, and Spark runs all by one name: there it is ours.
        folder = str(Path(interpreter()).parent)
        if os.environ.get("PATH", "").split(os.pathsep)[0] != folder:
            os.environ["PATH"] = os.pathsep.join((folder, os.environ.get("PATH", _USUAL_PATH)))


def workers_python(spark: Mapping[str, str]) -> str:
    """What workers run: on one machine always ours, which is warm. On a cluster what the user names
    (``spark.pyspark.python``, ``PYSPARK_PYTHON``), else the program of an archive that is sent along, else the driver's
    own path."""
    if is_one_machine(spark):
        return interpreter()
    named = spark.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    return named or (PROGRAM if archive_folder(spark) else interpreter())


def archive_folder(spark: Mapping[str, str]) -> str | None:
    """Where executors find the first archive that is unpacked for them, below the folder that they run in."""
    for name in ("spark.archives", "spark.yarn.dist.archives"):
        for archive in filter(None, (each.strip() for each in spark.get(name, "").split(","))):
            path, _, folder = archive.partition("#")
            return folder or path.rpartition("/")[2]
    return None


def is_one_machine(spark: Mapping[str, str]) -> bool:
    """Do tasks run in the driver's JVM, and their workers beside it?"""
    return spark["spark.master"].startswith("local")


def session_with(spark: Mapping[str, str]) -> SparkSession:
    """A session with these properties, in an environment that was prepared."""
    builder = SparkSession.builder
    for name, value in spark.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if spark.get(_FILE_SYSTEM) == local_files.RAW:
        local_files.use(session)
    if s3a.MARK in spark and object_logs.PROPERTY not in spark:
        object_logs.use(session)
    return session


def class_path(session: SparkSession) -> str:
    """Gives the class path of the session's JVM."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    return str(jvm.System.getProperty("java.class.path"))


def session(settings: Settings) -> SparkSession:
    """All of it; for a program that does nothing else meanwhile."""
    spark = properties(settings, submitted())
    prepare(spark, workers_python(spark))
    return session_with(spark)
