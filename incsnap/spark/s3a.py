"""What Spark is told for a checkpoint in a bucket: how Hadoop's ``s3a`` reaches it, and where its jars are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from incsnap.config.settings import Settings
from incsnap.spark.s3a_jars import s3a_jars

#: A property that no other session has.
MARK = "spark.hadoop.fs.s3a.performance.flags"
OPTIONS = {
    # A folder of ours is no folder of anybody else: nothing has to be looked for before it is written or deleted.
    MARK: "create,delete,mkdir",
    "spark.hadoop.fs.s3a.fast.upload.buffer": "array",  # some kilobytes, which need no file on a disk
    "spark.hadoop.fs.s3a.input.stream.type": "classic",  # the default is made for columns of large files
    # Both are seconds of a batch that waits; it is repeated then.
    "spark.hadoop.fs.s3a.attempts.maximum": "5",
    "spark.hadoop.fs.s3a.retry.limit": "5",
}
_CLASS_PATH = "spark.driver.extraClassPath"
#: Properties by which users bring jars of their own.
_BROUGHT = ("spark.jars", "spark.jars.packages", _CLASS_PATH)


def properties(settings: Settings) -> dict[str, str]:
    """Spark's properties of a job whose checkpoint is in a bucket. Raises ``ConfigError`` where the jars cannot be
    fetched."""
    chosen = {**OPTIONS, **settings.store.for_spark()}
    if not _has_jars(settings.spark):
        class_path = settings.spark.get(_CLASS_PATH)
        chosen[_CLASS_PATH] = f"{class_path}:{s3a_jars()}/*" if class_path else f"{s3a_jars()}/*"
    return {**chosen, **{name: value for name, value in settings.spark.items() if name != _CLASS_PATH}}


def _has_jars(spark: Mapping[str, str]) -> bool:
    named = any("hadoop-aws" in spark.get(name, "") or "hadoop-cloud" in spark.get(name, "") for name in _BROUGHT)
    # Whoever names a whole folder knows what is in it.
    whole = "*" in spark.get(_CLASS_PATH, "")
    return named or whole or any(Path(_find_spark_home(), "jars").glob("hadoop-aws-*.jar"))
