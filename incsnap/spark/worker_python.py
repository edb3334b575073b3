"""The program `incsnap-python`, which Spark runs as its Python (`PYSPARK_PYTHON`): the same interpreter, started warm.

Spark starts a daemon for each kind of worker (tasks, planner, committers and others), and each daemon forks its
workers. A worker that imports pyarrow, pandas, NumPy and incsnap itself takes a second. A worker that is forked from a
daemon with these imports starts at once and shares their memory. `spark.python.daemon.module` does this for tasks only,
so the interpreter does it. The first batch took 10.9 s without and 1.2 s with it, on two busy cores. No module may open
anything at import, because connections and threads do not survive a fork.

Spark's daemon calls `gc.collect()` after every task, which walks all imported objects: a third of a busy worker's time,
four fifths of an idle worker's. Imported objects stay for good, so they are frozen. The collector then sees only what
tasks have made. An idle batch fell from 371 to 184 ms.
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
#: Name of the console script.
PROGRAM = "incsnap-python"


def interpreter() -> str:
    """Return the path of the installed `incsnap-python`, or of the running interpreter if it is not installed."""
    installed = Path(sys.executable).with_name(PROGRAM)
    return str(installed) if os.access(installed, os.X_OK) else sys.executable


def main() -> None:
    """Run the console script: Spark's daemon after the imports; for any other arguments a plain Python."""
    if sys.argv[1:3] != ["-m", DAEMON]:
        # -P keeps the working directory off the path. A job may be started in a folder with another incsnap: it must
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
    """An import hook that reports pandas as not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)


@contextlib.contextmanager
def _without_pandas() -> Iterator[None]:
    """Hide pandas during the block.

    Nothing of incsnap uses pandas, which takes half a second of a busy core and 30 MB. A module that once failed to
    import pandas does not try again.
    """
    absent = _NoPandas()
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)


def leave_pandas_out() -> None:
    """Make pyarrow's first array without pandas. pyarrow would import pandas then, to recognize its objects."""
    import pyarrow as pa

    with _without_pandas():
        pa.array([None])


def leave_pandas_out_of_the_driver() -> None:
    """Import PySpark's test support without pandas.

    PySpark imports it when it passes the first number to the JVM, to learn whether NumPy is installed. The test support
    looks for all other packages that it can use.
    """
    with _without_pandas():
        import pyspark.testing.utils  # noqa: F401


def import_all() -> None:
    """Import the modules that Spark's Python processes use, so that processes forked from this one have them."""
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
    """Run Spark's daemon. `sys.argv[1]`: the module of its workers."""
    import pyarrow as pa
    import pyspark.daemon

    spark_worker = pyspark.daemon.worker
    first_task = True

    def worker(sock: socket.socket, authenticated: bool) -> int:
        """Run a worker, and return its exit code.

        Spark hangs up on a worker that was idle for a minute or is no longer needed. This is no error and gets no stack
        trace. The exit code then is 1: for 0 the daemon would call again at once, for ever.
        """
        nonlocal first_task
        try:
            return int(spark_worker(sock, authenticated))
        except (BrokenPipeError, ConnectionResetError):
            return 1
        finally:
            # Release the memory that Arrow keeps of a large task, in each of eight workers. This takes 0.02 ms if there
            # is little, else 0.4 ms.
            pa.default_memory_pool().release_unused()
            if first_task:
                # Whatever the first task has imported and cached (clients, formats) stays too.
                first_task = False
                gc.collect()
                gc.freeze()

    # PySpark's daemon has no hook for this, so its function is replaced.
    pyspark.daemon.worker = worker
    pyspark.daemon.manager()


if __name__ == "__main__":
    main()
