"""A session of Spark for programs of tests that run jobs in a session of their own."""

from __future__ import annotations

from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.spark.session import prepare, properties, session_with, submitted, workers_python


def session(settings: Settings) -> SparkSession:
    """Return a session for the settings: choose properties, prepare the environment, start Spark."""
    spark = properties(settings, submitted())
    prepare(spark, workers_python(spark))
    return session_with(spark)
