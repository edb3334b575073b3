"""``lake_query`` as a child: a query that merges the changes of one MySQL table into a lake's table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from incsnap.spark.child_programs import child
from incsnap.tables import TableId
from lab.fetched_lake import Lake
from lab.running_job import RunningJob, kill_session


@contextmanager
def running_query(lake: Lake, properties: Path, table: TableId, name: str, folder: Path) -> Iterator[RunningJob]:
    """One life of the query of ``table``; whatever is left of it is killed when the block ends.

    ``name``: the lake's table, as Spark is told it; in the lake's ``catalog`` it lies in ``folder``/warehouse. Below
    ``folder`` are ``query.log`` and ``spark``, the query's checkpointLocation, too. Raises ``ServerUnreachable`` where
    the lake's Spark cannot be fetched.
    """
    command = [sys.executable, "-m", "lab.lake_query", str(properties), str(table), name, "--format", lake.format]
    command += ["--checkpoint", f"{folder}/spark", "--warehouse", f"{folder}/warehouse"]
    with child("lab.lake_query", command, folder / "query.log", env=lake.environment()) as started:
        try:
            yield RunningJob(started, folder)
        finally:
            kill_session(started.pid)
