"""Sessions of Spark for tests that need one beside the session's fixture: started as a job or a command starts it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from pyspark import SparkContext
from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.spark.launch.startup import launched
from incsnap.spark.session import prepare, properties, session_with, submitted, workers_python
from tests.support.waiting import PATIENCE_SECONDS


def session(settings: Settings) -> SparkSession:
    """Return a session for the settings: choose properties, prepare the environment, start Spark."""
    spark = properties(settings, submitted())
    prepare(spark, workers_python(spark))
    return session_with(spark)


@contextmanager
def launched_session(settings: Settings) -> Iterator[SparkSession]:
    """Yield a session that is started as a command starts it. Later tests of this process find no trace of it."""
    end_jvm()
    with mock.patch.dict(os.environ), launched(settings) as launch:
        started = launch.session()
        try:
            yield started
        finally:
            started.stop()
            end_jvm()


def end_jvm() -> None:
    """End the JVM of this process's sessions, and make PySpark forget it. The next session starts a JVM of its own."""
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        # PySpark did not start the JVM that it was given.
        if gateway.proc is not None:
            gateway.proc.stdin.close()
            gateway.proc.wait(PATIENCE_SECONDS)
    SparkContext._gateway = SparkContext._jvm = None
