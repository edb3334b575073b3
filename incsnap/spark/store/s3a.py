"""Spark's properties for a checkpoint in an object store: access by Hadoop's `s3a`, and the place of its jars."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from incsnap.config.settings import Settings
from incsnap.spark.store.s3a_jars import s3a_jars

#: A property that only a session of incsnap has.
MARK = "spark.hadoop.fs.s3a.performance.flags"
#: Hadoop's options, the same for each store.
OPTIONS = {
    # Only the job writes to its folder, so nothing has to be looked for before a write or a deletion.
    MARK: "create,delete,mkdir",
    "spark.hadoop.fs.s3a.fast.upload.buffer": "array",  # a few kilobytes: no file on disk is needed
    "spark.hadoop.fs.s3a.input.stream.type": "classic",  # the default suits columns of large files
    # Both mean seconds of a batch that waits. A batch that fails is repeated.
    "spark.hadoop.fs.s3a.attempts.maximum": "5",
    "spark.hadoop.fs.s3a.retry.limit": "5",
}
_CLASS_PATH = "spark.driver.extraClassPath"
#: Properties by which users add jars of their own.
_BROUGHT = ("spark.jars", "spark.jars.packages", _CLASS_PATH)


def properties(settings: Settings) -> dict[str, str]:
    """Return Spark's properties for a job whose checkpoint is in an object store.

    Raise ConfigError if the jars of `s3a` cannot be fetched.
    """
    chosen = {**OPTIONS, **settings.store.for_spark()}
    if not _has_jars(settings.spark):
        class_path = settings.spark.get(_CLASS_PATH)
        chosen[_CLASS_PATH] = f"{class_path}:{s3a_jars()}/*" if class_path else f"{s3a_jars()}/*"
    return {**chosen, **{name: value for name, value in settings.spark.items() if name != _CLASS_PATH}}


def _has_jars(spark: Mapping[str, str]) -> bool:
    """Return True if the user or Spark itself brings the jars of `s3a`."""
    named = any("hadoop-aws" in spark.get(name, "") or "hadoop-cloud" in spark.get(name, "") for name in _BROUGHT)
    # A user who names a whole folder knows its content.
    whole = "*" in spark.get(_CLASS_PATH, "")
    return named or whole or any(Path(_find_spark_home(), "jars").glob("hadoop-aws-*.jar"))
