"""The command `incsnap prepare`: makes the archive of classes that later starts on this machine use."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.find_spark_home import _find_spark_home

from incsnap.config.servers import KafkaSettings, MySqlSettings
from incsnap.config.settings import Settings
from incsnap.spark.launch.class_archive import ClassArchive
from incsnap.spark.launch.dry_run import dry_run
from incsnap.spark.launch.gateway import Gateway
from incsnap.spark.session import prepare, properties, session_with
from incsnap.spark.spark_release import require_admission_control
from incsnap.spark.worker_python import interpreter

#: Settings without servers: an archive depends on Java, Spark and `spark.driver.extraClassPath` only.
_ANY_JOB = Settings(
    mysql=MySqlSettings(hostname="", user=""),
    kafka=KafkaSettings(bootstrap_servers=""),
    topic_prefix="",
    checkpoint_location="/",
)


def prepare_start(settings: Settings | None = None) -> Path | None:
    """Make the archive that jobs with these `spark.*` settings start from, unless it exists. This takes half a minute.

    Return the archive's file; None if no archive can be used. Reasons are: the settings choose their own class sharing,
    the cache directory is not writable, or Java cannot make an archive. Raise JvmDidNotStart if the JVM ends before it
    listens. Raise ConfigError if Spark is too old.
    """
    require_admission_control()
    spark = {**properties(settings or _ANY_JOB), "spark.master": "local[4,4]"}
    home = _find_spark_home()
    with contextlib.closing(ClassArchive(spark, home)) as archive:
        if (made := archive.file()) is not None:
            return made
        with archive.preparing() as folder:
            # Another program may have made it, while this one waited.
            if folder is not None and archive.file() is None:
                classes = folder / "classes"
                archive.make(classes, _list_classes(spark, home, classes, folder))
        return archive.file()


def _list_classes(spark: Mapping[str, str], home: str, classes: Path, folder: Path) -> str:
    """Run a query in a JVM that lists the classes it loads in the file `classes`. Return the JVM's class path."""
    prepare(spark, interpreter())
    listing = f"{spark['spark.driver.defaultJavaOptions']} -XX:DumpLoadedClassList={classes}"
    with contextlib.closing(Gateway({**spark, "spark.driver.defaultJavaOptions": listing}, home)) as gateway:
        with gateway.offered():
            session = session_with(spark)
        # PySpark's server of accumulators may lose the JVM before it is told to end. Its thread then prints a stack
        # trace, at any time until this program ends.
        accumulators: Any = session.sparkContext._accumulatorServer
        accumulators.handle_error = lambda *_: None
        jvm = session.sparkContext._jvm
        assert jvm is not None
        class_path = str(jvm.System.getProperty("java.class.path"))
        try:
            dry_run(session, f"file://{folder}/checkpoint")
        finally:
            session.stop()
    return class_path
