"""``incsnap-python``: the interpreter that Spark is told to run (``PYSPARK_PYTHON``). The same Python, started warm.

Spark starts a daemon for each kind of worker (tasks, planner, committers, ...), and each daemon forks its workers.
A worker that imports pyarrow, pandas, NumPy and us for itself takes a second; one forked from a daemon that has
them starts at once and shares their memory. ``spark.python.daemon.module`` does this for tasks only, so the
interpreter itself must: the first batch took 10.9 s without and 1.2 s with it (two busy cores). Nothing may be
opened at import: connections and threads do not survive a fork.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

_DAEMON = ["-m", "pyspark.daemon"]


def interpreter() -> str:
    """The installed ``incsnap-python`` beside the running interpreter; that interpreter where there is none."""
    installed = Path(sys.executable).with_name("incsnap-python")
    return str(installed) if os.access(installed, os.X_OK) else sys.executable


def main() -> None:
    """The console script: Spark's worker daemon after the imports; for anything else, plain Python."""
    if sys.argv[1:3] != _DAEMON:
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    sys.argv = sys.argv[2:]
    _import_all()
    _daemon()


def _import_all() -> None:
    import pandas  # noqa: F401
    import pyspark.sql.conversion
    import pyspark.sql.datasource
    import pyspark.sql.pandas.serializers
    import pyspark.sql.streaming.python_streaming_source_runner
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.sql.worker.write_into_data_source
    import pyspark.worker  # noqa: F401

    import incsnap.pipeline.sink
    import incsnap.pipeline.source  # noqa: F401


def _daemon() -> None:
    import pyspark.daemon

    spark_worker = pyspark.daemon.worker

    def worker(sock: socket.socket, authenticated: bool) -> int:
        """Spark hangs up on a planner or committer that it needs no more: no error, and no stack trace is due."""
        try:
            return int(spark_worker(sock, authenticated))
        except (BrokenPipeError, ConnectionResetError):
            return 0

    # The daemon has no hook for this.
    pyspark.daemon.worker = worker
    pyspark.daemon.manager()


if __name__ == "__main__":
    main()
