"""``incsnap-python``: the interpreter that Spark is told to run (``PYSPARK_PYTHON``). The same Python, started warm.

Spark starts a daemon for each kind of worker (tasks, planner, committers, ...), and each daemon forks its workers.
A worker that imports pyarrow, pandas, NumPy and us for itself takes a second; one forked from a daemon that has
them starts at once and shares their memory. ``spark.python.daemon.module`` does this for tasks only, so the
interpreter itself must: the first batch took 10.9 s without and 1.2 s with it (two busy cores). Nothing may be
opened at import: connections and threads do not survive a fork.

Spark's daemon calls ``gc.collect()`` after every task, which walks all that was imported: a third of a busy worker's
time, four fifths of an idle one's. What was imported stays for good, so it is frozen, which leaves the collector only
what tasks have made: an idle batch fell from 371 to 184 ms.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path

from incsnap.tasks import process_name

#: The module of the process that forks the workers of one kind.
DAEMON = "pyspark.daemon"
#: The console script.
PROGRAM = "incsnap-python"


def interpreter() -> str:
    """The installed ``incsnap-python`` beside the running interpreter; that interpreter where there is none."""
    installed = Path(sys.executable).with_name(PROGRAM)
    return str(installed) if os.access(installed, os.X_OK) else sys.executable


def main() -> None:
    """The console script: Spark's worker daemon after the imports; for anything else, plain Python."""
    if sys.argv[1:3] != ["-m", DAEMON]:
        # Without the working directory on its path: a job that is started in a folder with another incsnap in it must
        # plan with the installed one, as its workers do.
        os.execv(sys.executable, [sys.executable, "-P", *sys.argv[1:]])
    sys.argv = sys.argv[2:]
    process_name.take(process_name.of(sys.argv))
    leave_pandas_out()
    import_all()
    gc.collect()
    gc.freeze()
    daemon()


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)


@contextlib.contextmanager
def _without_pandas() -> Iterator[None]:
    """Nothing of ours uses it: half a second of a busy core, and 30 MB. Told once that there is none, those who have
    asked do not ask again."""
    absent = _NoPandas()
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)


def leave_pandas_out() -> None:
    """pyarrow imports pandas, to know its objects, when it makes its first array."""
    import pyarrow as pa

    with _without_pandas():
        pa.array([None])


def leave_pandas_out_of_the_driver() -> None:
    """PySpark imports its own test support when it hands the first number to the JVM, to know whether there is NumPy;
    and that looks for the rest of what it can be tested with."""
    with _without_pandas():
        import pyspark.testing.utils  # noqa: F401


def import_all() -> None:
    """What any of Spark's Python processes uses."""
    import pyspark.sql.conversion
    import pyspark.sql.datasource
    import pyspark.sql.pandas.serializers
    import pyspark.sql.streaming.python_streaming_source_runner
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.sql.worker.write_into_data_source
    import pyspark.worker  # noqa: F401

    import incsnap.spark.reader_jobs
    import incsnap.spark.sink
    import incsnap.spark.source  # noqa: F401


def daemon() -> None:
    """Spark's daemon, ``sys.argv[1]`` the module of its workers."""
    import pyarrow as pa
    import pyspark.daemon

    spark_worker = pyspark.daemon.worker
    first_task = True

    def worker(sock: socket.socket, authenticated: bool) -> int:
        """Spark hangs up on a worker that was idle for a minute, or that it needs no more: no error, and no stack trace
        is due. Not 0 either: the daemon would take that for a task well done, and call again, for ever, at full speed.
        """
        nonlocal first_task
        try:
            return int(spark_worker(sock, authenticated))
        except (BrokenPipeError, ConnectionResetError):
            return 1
        finally:
            # What Arrow keeps of a large task, in each of eight workers: 0.02 ms where there is little, else 0.4.
            pa.default_memory_pool().release_unused()
            if first_task:
                # What the first task has imported and cached (clients, formats) stays as well.
                first_task = False
                gc.collect()
                gc.freeze()

    # The daemon has no hook for this.
    pyspark.daemon.worker = worker
    pyspark.daemon.manager()


if __name__ == "__main__":
    main()
