"""``lake_query`` as a child: a query that merges the changes of one MySQL table into a Delta table."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from incsnap.spark.child_programs import child
from incsnap.tables import TableId
from lab.running_job import RunningJob, kill_session


@contextmanager
def running_query(
    environment: Mapping[str, str], properties: Path, table: TableId, lake: str, folder: Path
) -> Iterator[RunningJob]:
    """One life of the query of ``table``; whatever is left of it is killed when the block ends.

    ``environment``: of ``fetched_lake``. ``lake``: the Delta table, as Spark is told it; by a name alone it lies in
    ``folder``/warehouse. Below ``folder`` are ``query.log`` and ``spark``, the query's checkpointLocation, too.
    """
    command = [sys.executable, "-m", "lab.lake_query", str(properties), str(table), lake]
    command += ["--checkpoint", f"{folder}/spark", "--warehouse", f"{folder}/warehouse"]
    with child("lab.lake_query", command, folder / "query.log", env=environment) as started:
        try:
            yield RunningJob(started, folder)
        finally:
            kill_session(started.pid)
