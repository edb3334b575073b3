"""The start of ``incsnap run``: JVM and imports side by side, while the servers are asked whether they are ready.

It is the time that a job is away after a crash. One after the other took 15 s; what needs nothing else goes first, and
is waited for last: the JVM, then the process that has imported everything, then all that asks MySQL and Kafka.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.spark.class_archive import ClassArchive
from incsnap.spark.gateway import GIVEN, Gateway
from incsnap.spark.session import is_one_machine, made, prepare, properties
from incsnap.spark.worker_python import interpreter
from incsnap.spark.zygote import Zygote


class Starting:
    """What runs ahead of the session; without ``gateway``, nothing does."""

    def __init__(
        self, spark: Mapping[str, str], archive: ClassArchive, gateway: Gateway | None, zygote: Zygote | None
    ) -> None:
        self._spark = spark
        self._zygote = zygote
        self._archive = archive
        self._gateway = gateway

    def session(self) -> SparkSession:
        """Waits for the JVM; to be called once. Raises ``JvmDidNotStart``."""
        if self._gateway is None:
            return made(self._spark)
        self._gateway.offer()
        try:
            spark = made(self._spark)
        finally:
            self._gateway.withdraw()
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self._archive.make_later(jvm.System.getProperty("java.class.path"))
        return spark

    def keep(self) -> None:
        """What a query needs of it is there again, whoever has cleared it away: to be called before each."""
        if self._zygote is not None:
            with contextlib.suppress(OSError):  # no room, for the moment: then the query fails, and is begun again
                self._zygote.keep_program()


@contextlib.contextmanager
def starting(settings: Settings) -> Iterator[Starting]:
    """Begins at once. What runs ahead, and Spark with it, ends with the block."""
    spark = properties(settings)
    home = _find_spark_home()
    with contextlib.ExitStack() as stack:
        archive = ClassArchive(spark, home)
        stack.callback(archive.close)
        zygote = Zygote() if is_one_machine(spark) else None
        prepare(spark, zygote.python if zygote else interpreter())
        gateway = None
        if GIVEN not in os.environ:
            options = f"{spark.get('spark.driver.defaultJavaOptions', '')} {archive.options()}"
            gateway = Gateway({**spark, "spark.driver.defaultJavaOptions": options}, home)
            stack.callback(gateway.close)
        if zygote:
            stack.callback(zygote.close)
            zygote.start(gateway.descriptors if gateway else ())
        yield Starting(spark, archive, gateway, zygote)
