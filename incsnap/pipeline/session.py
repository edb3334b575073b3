"""The SparkSession of `incsnap run`: Spark's own defaults cost 200-300 ms a micro-batch, these 34-80 ms.

A session of the user's own works too (``job.start``); then these settings are theirs to make.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlparse

from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.pipeline.worker_python import interpreter

#: What holds wherever the checkpoint lies. Users' own ``spark.*`` properties win over all of them.
_ALWAYS = {
    "spark.master": "local[2,4]",  # two cores; a task is tried four times (local mode's default is once)
    "spark.app.name": "incsnap",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # one shuffle of a few binaries: nothing to adapt
    "spark.sql.streaming.pollingDelay": "5ms",  # the planner itself waits for the binlog; Spark need not
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    # Blocks are megabytes each: the default of 10,000 rows a batch would collect gigabytes on the way.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    "spark.shuffle.compress": "false",  # blocks are compressed already
    "spark.rpc.message.maxSize": "512",  # MiB: input partitions carry slices of the binlog
    "spark.redaction.regex": "(?i)secret|password|passphrase|token|access[.]?key",
    "spark.scheduler.mode": "FIFO",
    "spark.driver.memory": "2g",
}
#: Only for a checkpoint on a local disk: the default manager forks a process for each file it writes
#: (commit log 110-200 ms against 4-14 ms).
_LOCAL_CHECKPOINT = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}


def is_local(location: str) -> bool:
    """Is the checkpoint a path of this machine's file system?"""
    return urlparse(location).scheme in ("", "file")


def session(settings: Settings) -> SparkSession:
    """A session tuned for small batches; Python workers run the interpreter that runs this."""
    os.environ["PYSPARK_PYTHON"] = interpreter()
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    chosen = dict(_ALWAYS)
    log_settings = Path(__file__).with_name("log4j2.properties")
    chosen["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={log_settings}"
    if is_local(settings.checkpoint_location):
        chosen.update(_LOCAL_CHECKPOINT)
    chosen.update(settings.spark)
    if chosen["spark.master"].startswith("local"):
        # Loopback only, and no warning about the machine's name.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
