"""The start of ``incsnap run``: JVM and imports side by side, while the servers are asked whether they are ready.

It is the time that a job is away after a crash. One after the other took 15 s; what needs nothing else goes first, and
is waited for last: the JVM, then the process that has imported everything, then all that asks MySQL and Kafka.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError, PreflightFailed, shorten
from incsnap.spark.class_archive import ClassArchive
from incsnap.spark.gateway import GIVEN, Gateway
from incsnap.spark.machines import REACHED, machine_findings
from incsnap.spark.session import class_path, is_one_machine, prepare, properties, session_with, workers_python
from incsnap.spark.spark_release import require_admission_control
from incsnap.spark.submitted import submitted
from incsnap.spark.worker_python import leave_pandas_out_of_the_driver
from incsnap.spark.zygote import Zygote


class SparkDidNotStart(IncsnapError):
    hint = f"Look at the lines above. {REACHED}."
    resumable = False


class Starting:
    """What runs ahead of the session; without ``gateway``, nothing does."""

    def __init__(
        self,
        settings: Settings,
        spark: Mapping[str, str],
        archive: ClassArchive | None,
        gateway: Gateway | None,
        zygote: Zygote | None,
    ) -> None:
        self._settings = settings
        self._spark = spark
        self._zygote = zygote
        self._archive = archive
        self._gateway = gateway

    def session(self) -> SparkSession:
        """Waits for the JVM; to be called once. Raises ``JvmDidNotStart`` or ``SparkDidNotStart``."""
        if self._gateway is None:
            return self._session()
        with self._gateway.offered():
            spark = self._session()
        if self._archive is not None:
            self._archive.make_later(class_path(spark))
        return spark

    def _session(self) -> SparkSession:
        try:
            return session_with(self._spark)
        except (Py4JError, PySparkException, ConnectionError) as error:
            master = self._spark["spark.master"]
            raise SparkDidNotStart(f"Spark has no session on {master}: {_error_text(error)}") from None

    def require_machines(self, spark: SparkSession) -> None:
        """Raises ``PreflightFailed`` where the machines of a cluster are not ready."""
        if is_one_machine(self._spark):
            return
        if findings := machine_findings(spark.sparkContext, self._settings):
            lines = "".join(f"\n  {each}" for each in findings)
            raise PreflightFailed(f"The cluster's machines are not ready:{lines}")

    def keep(self) -> None:
        """What a query needs of it is there again, whoever has cleared it away: to be called before each."""
        if self._zygote is not None:
            with contextlib.suppress(OSError):  # no room, for the moment: then the query fails, and is begun again
                self._zygote.keep_program()


def _error_text(error: Exception) -> str:
    """Py4J asks the JVM for the words of an error, and that may have ended."""
    try:
        lines = [line.lstrip(": ") for line in str(error).splitlines() if line.strip()]
    except (Py4JError, ConnectionError):
        lines = []
    return shorten(" ".join(lines[:2]) or "its JVM has ended", 300)


@contextlib.contextmanager
def starting(settings: Settings) -> Iterator[Starting]:
    """Begins at once. What runs ahead, and Spark with it, ends with the block.

    Raises ``ConfigError`` where this Spark is too old.
    """
    require_admission_control()
    submitted_properties = submitted()
    spark = properties(settings, submitted_properties)
    # Of a JVM that is given there need be no folder of Spark: YARN's containers have none.
    home = None if GIVEN in os.environ else _find_spark_home()
    with contextlib.ExitStack() as stack:
        archive = None
        if home is not None:
            archive = ClassArchive(spark, home)
            stack.callback(archive.close)
        # Whoever has a JVM already has threads that speak to it, and what forks must have none.
        zygote = Zygote() if is_one_machine(spark) and home is not None else None
        prepare(spark, zygote.python if zygote else workers_python(spark))
        gateway = None
        if home is not None and archive is not None:
            gateway = Gateway(archive.used_in(spark), home)
            stack.callback(gateway.close)
        leave_pandas_out_of_the_driver()
        if zygote:
            stack.callback(zygote.close)
            zygote.start(gateway.descriptors if gateway else ())
        yield Starting(settings, spark, archive, gateway, zygote)
