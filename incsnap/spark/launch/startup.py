"""The door to Spark: `launched` begins a start for `incsnap run`, and `Launch.session` waits for its session.

There are two ways, and `incsnap.spark.launch.mode` chooses one:

    prestart    the JVM boots and the zygote imports while the caller checks MySQL and Kafka; 4 s to the first record
    plain       `SparkSession.builder` starts the JVM when `session` is called, and Spark starts each Python process

A start is the time that a job is away after a crash. One after the other the steps of a start took 15 s. So
`prestart` begins the steps that need no other step first, and waits for them last. The JVM is the first, then the
zygote with all imports, then the caller's questions to MySQL and Kafka. Use `plain` to find out whether a fault lies in
these processes or in the job. A program that `spark-submit` has started was given a JVM, and its start is always plain.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from tempfile import gettempdir

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError, shorten
from incsnap.spark.cluster.machines import REACHED
from incsnap.spark.full_disk import FULL
from incsnap.spark.launch.class_archive import ClassArchive
from incsnap.spark.launch.gateway import Gateway
from incsnap.spark.launch.zygote import Zygote
from incsnap.spark.session import (
    GIVEN_JVM,
    is_one_machine,
    prepare,
    properties,
    session_with,
    submitted,
    workers_python,
)
from incsnap.spark.spark_release import require_admission_control
from incsnap.spark.worker_python import leave_pandas_out_of_the_driver


class SparkDidNotStart(IncsnapError):
    """An error: Spark gave no session."""

    hint = f"Read the lines above. {REACHED}."
    resumable = False


@dataclass(frozen=True, slots=True)
class Launch:
    """A start of Spark that has begun."""

    spark: Mapping[str, str]  #: the session's properties
    gateway: Gateway | None = None  #: the JVM that boots already; None for a plain start
    zygote: Zygote | None = None  #: the process that forks Spark's Python processes; None on a cluster too

    def session(self) -> SparkSession:
        """Return the Spark session, after waiting for the JVM that boots already, or after starting one. Call this
        once, on the main thread.

        Raise SparkDidNotStart if there is no session, and JvmDidNotStart if the JVM that boots already has ended or
        does not listen in time.
        """
        handler = signal.getsignal(signal.SIGINT)
        try:
            with self.gateway.offered() if self.gateway else contextlib.nullcontext():
                return session_with(self.spark)
        except (Py4JError, PySparkException, ConnectionError) as error:
            master = self.spark["spark.master"]
            raise SparkDidNotStart(f"Spark has no session on {master}: {_first_lines(error)}") from None
        finally:
            # PySpark has installed a handler of its own, which cancels the jobs and raises KeyboardInterrupt anywhere.
            signal.signal(signal.SIGINT, handler)

    def before_query(self) -> None:
        """Restore what Spark's Python processes need, if something has deleted it. Call this before each query."""
        if self.zygote is not None:
            # No room on the disk at the moment: the query then fails and is begun again.
            with contextlib.suppress(OSError):
                self.zygote.keep_program()


@contextlib.contextmanager
def launched(settings: Settings) -> Iterator[Launch]:
    """Begin to start Spark for `settings`, and yield the start.

    Processes that `prestart` has started end with the block. The JVM of `plain` ends with this program.

    Raise ConfigError if Spark is too old, or if the jars for a checkpoint in a bucket cannot be fetched. Raise
    SparkDidNotStart if the temporary folder is full.
    """
    require_admission_control()
    spark = properties(settings, submitted())
    if "TMPDIR" in os.environ and "spark.local.dir" not in spark:
        # Spark's blocks hold rows. They go to the folder that holds all other temporary files.
        os.environ.setdefault("SPARK_LOCAL_DIRS", gettempdir())
    # A program that was given a JVM has threads that talk to it, and a process that forks must have no threads. Spark's
    # folder may also be missing there: YARN's containers have none.
    if GIVEN_JVM in os.environ or settings.spark_launch_mode == "plain":
        prepare(spark, workers_python(spark))
        leave_pandas_out_of_the_driver()
        yield Launch(spark)
        return
    with contextlib.ExitStack() as stack:
        try:
            launch = _started(spark, stack)
        except OSError as error:
            # Python looks for a temporary folder that it can write to.
            if error.errno not in FULL and "No usable temporary directory" not in str(error):
                raise
            raise SparkDidNotStart(
                f"no space left in the temporary folder: {error}",
                "Free space there, or set TMPDIR to a folder on a larger disk, and start again.",
            ) from None
        yield launch


def _started(spark: Mapping[str, str], stack: contextlib.ExitStack) -> Launch:
    """Return the start of a session with these properties. Closing `stack` ends its processes.

    Raise OSError if there is no space for temporary files.
    """
    home = _find_spark_home()
    archive = stack.enter_context(contextlib.closing(ClassArchive(spark, home)))
    # Workers on other machines are no forks of a process here.
    zygote = Zygote() if is_one_machine(spark) else None
    prepare(spark, zygote.python if zygote else workers_python(spark))
    gateway = stack.enter_context(contextlib.closing(Gateway(archive.used_in(spark), home)))
    leave_pandas_out_of_the_driver()
    if zygote:
        stack.callback(zygote.close)
        zygote.start(gateway.descriptors)
    return Launch(spark, gateway, zygote)


def _first_lines(error: Exception) -> str:
    """Return the first lines of an error. Py4J asks the JVM for an error's text, and the JVM may have ended."""
    try:
        lines = [line.lstrip(": ") for line in str(error).splitlines() if line.strip()]
    except (Py4JError, ConnectionError):
        lines = []
    return shorten(" ".join(lines[:2]) or "its JVM has ended", 300)
