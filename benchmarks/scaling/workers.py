"""One job on a standalone cluster of 1, 2 and 4 workers. All of them are on this machine, so what more of them cost is
seen here, and what they bring only as far as the machine has cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from benchmarks.backlogs import Backlogs
from benchmarks.benchmark_database import BenchmarkDatabase
from benchmarks.rows import Figures, Scale
from benchmarks.sides import INCSNAP, Job
from benchmarks.warm import WarmJob
from lab.spark_cluster import spark_cluster

WORKERS = (1, 2, 4)
_CORES = 2
#: What is measured, and the figure of it that is told.
FIGURES = {"snapshot": "snapshot, rows/s", "backlog": "backlog of 1,000-row transactions, changes/s"}


def of_workers(database: BenchmarkDatabase, scale: Scale, say: Callable[[str], None]) -> dict[int, Figures]:
    """``FIGURES`` by the number of workers. What fails raises."""
    snapshots, backlogs = WarmJob(database, scale, ["snapshot"]), Backlogs(database, scale, ["backlog"])
    found: dict[int, Figures] = {}
    for count in WORKERS:
        say(f"a job on {count} workers of {_CORES} cores")
        notes = _Figures()
        with spark_cluster(workers=count, cores=_CORES) as cluster:
            new_job = partial(_job, database, count, cluster.settings)
            snapshots.measure(partial(new_job, "snapshot", snapshots.tables), notes)
            backlogs.measure({INCSNAP: partial(new_job, "backlog", backlogs.tables)}, {INCSNAP: notes})
        found[count] = {name: notes.figures[name] for name in FIGURES}
    return found


def _job(
    database: BenchmarkDatabase, workers: int, cluster: Mapping[str, str], kind: str, tables: Sequence[str]
) -> Job:
    number = 2 * workers + (kind == "backlog")
    prefix = f"bench-{os.getpid()}-workers-{workers}-{kind}"
    return Job(INCSNAP, database, prefix, tables, 100_000 + os.getpid() % 50_000 * 100 + number, cluster)


def rows(found: Mapping[int, Figures]) -> Iterable[Sequence[str]]:
    """Lines of a table: workers, and ``FIGURES``."""
    for count, figures in found.items():
        yield f"{count} of {_CORES} cores", *(f"{figures[name]:,.0f}" for name in FIGURES)


class _Figures:
    """Notes of one job; here nothing goes on without what has failed."""

    def __init__(self) -> None:
        self.figures: Figures = {}

    def found(self, measurement: str, figures: Figures) -> None:
        self.figures |= figures

    def failed(self, measurements: Sequence[str], error: Exception) -> None:
        raise error
