"""A child process that runs `lake_query`, which merges the changes of one MySQL table into a lake's table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from incsnap.tables import TableId
from lab.child_programs import child
from lab.fetched_lake import Lake
from lab.running_job import RunningJob, kill_session


@contextmanager
def running_query(lake: Lake, properties: Path, table: TableId, name: str, folder: Path) -> Iterator[RunningJob]:
    """Run the query of `table` until the block ends. Then kill all its remaining processes.

    `name` is Spark's name of the lake's table, which lies in `folder`/warehouse. `folder` also gets `query.log` and
    `spark`, the query's checkpointLocation. Raise ServerUnreachable if the lake's Spark cannot be fetched.
    """
    command = [sys.executable, "-m", "lab.lake_query", str(properties), str(table), name, "--format", lake.format]
    command += ["--checkpoint", f"{folder}/spark", "--warehouse", f"{folder}/warehouse"]
    with child("lab.lake_query", command, folder / "query.log", env=lake.environment()) as started:
        try:
            yield RunningJob(started, folder)
        finally:
            kill_session(started.pid)
