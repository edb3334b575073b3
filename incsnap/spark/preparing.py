"""``incsnap prepare``: the archive of classes, made before the first start instead of beside the first job."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from incsnap.config.servers import KafkaSettings, MySqlSettings
from incsnap.config.settings import Settings
from incsnap.spark.class_archive import ClassArchive
from incsnap.spark.dry_run import dry_run
from incsnap.spark.gateway import Gateway
from incsnap.spark.session import class_path, prepare, properties, session_with
from incsnap.spark.spark_release import require_admission_control
from incsnap.spark.worker_python import interpreter

#: What no job needs to start Spark: an archive depends on Java, Spark and ``spark.driver.extraClassPath`` alone.
_ANY_JOB = Settings(
    mysql=MySqlSettings(hostname="", user=""),
    kafka=KafkaSettings(bootstrap_servers=""),
    topic_prefix="",
    checkpoint_location="/",
)


def prepare_start(settings: Settings | None = None) -> Path | None:
    """Makes the archive that jobs with these ``spark.*`` settings will start from, unless it is there.

    Takes half a minute. Returns its file; None where none can be used: the settings say themselves how classes are
    shared, the cache directory cannot be written to, Java cannot make one, or a limit leaves too little memory.
    Raises ``JvmDidNotStart``, or ``ConfigError`` where this Spark is too old.
    """
    require_admission_control()
    spark = {**properties(settings or _ANY_JOB), "spark.master": "local[4,4]"}
    home = _find_spark_home()
    with contextlib.ExitStack() as stack:
        archive = ClassArchive(spark, home)
        stack.callback(archive.close)
        with_list = archive.used_in(spark)
        if not archive.is_missing():
            return archive.file()
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="incsnap-prepare-"))
        prepare(spark, interpreter())
        gateway = Gateway(with_list, home)
        stack.callback(gateway.close)
        with gateway.offered():
            session = session_with(spark)
        jars = class_path(session)
        try:
            dry_run(session, f"file://{folder}")
        finally:
            # PySpark's server of accumulators may see its JVM go before it is told to, and then shows a stack trace.
            with contextlib.redirect_stderr(io.StringIO()):
                session.stop()
        archive.make_now(jars)
        return archive.file()
