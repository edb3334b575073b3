"""A job on a standalone cluster of 1, 2 and 4 workers, all on this machine.

The cost of more workers is visible here, but their gain only as far as the machine has cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.backlogs import Backlogs
from benchmarks.benchmark_database import BenchmarkDatabase, benchmark_database
from benchmarks.measured_jobs import INCSNAP, Job
from benchmarks.rows import Figures, Scale
from benchmarks.warm_job import WarmJob
from lab.servers import Servers
from lab.spark_cluster import spark_cluster

WORKERS = (1, 2, 4)
_CORES = 2
#: The measured rows, and their titles in the table.
FIGURES = {"snapshot": "snapshot, rows/s", "backlog": "backlog of 1,000-row transactions, changes/s"}


def of_workers(servers: Servers, folder: Path, scale: Scale, say: Callable[[str], None]) -> dict[int, Figures]:
    """Return the figures of `FIGURES` by the number of workers. Any failure raises its error."""
    notes_by_count = {count: _Figures() for count in WORKERS}
    # Two databases, because tables of both measurements have equal names.
    with benchmark_database(servers, folder) as database:
        snapshots = WarmJob(database, scale, ["snapshot"])
        for count, figures in notes_by_count.items():
            with _cluster(count, "snapshot", say) as settings:
                snapshots.measure(partial(_job, database, count, settings, "snapshot", snapshots.tables), figures)
    with benchmark_database(servers, folder) as database:
        backlogs = Backlogs(database, scale, ["backlog"])
        for count, figures in notes_by_count.items():
            with _cluster(count, "backlog", say) as settings:
                new_job = partial(_job, database, count, settings, "backlog", backlogs.tables)
                backlogs.measure({INCSNAP: new_job}, {INCSNAP: figures})
    return {count: {name: notes.figures[name] for name in FIGURES} for count, notes in notes_by_count.items()}


@contextmanager
def _cluster(workers: int, kind: str, say: Callable[[str], None]) -> Iterator[Mapping[str, str]]:
    """Run a cluster, and yield the settings of a job on it."""
    say(f"the {kind} of a job on {workers} workers of {_CORES} cores")
    with spark_cluster(workers=workers, cores=_CORES) as cluster:
        yield cluster.settings


def _job(
    database: BenchmarkDatabase, workers: int, cluster: Mapping[str, str], kind: str, tables: Sequence[str]
) -> Job:
    number = 2 * workers + (kind == "backlog")
    prefix = f"bench-{os.getpid()}-workers-{workers}-{kind}"
    return Job(INCSNAP, database, prefix, tables, 100_000 + os.getpid() % 50_000 * 100 + number, cluster)


def rows(by_count: Mapping[int, Figures]) -> Iterable[Sequence[str]]:
    """Return the lines of a table: the number of workers, and the figures of `FIGURES`."""
    for count, figures in by_count.items():
        yield f"{count} of {_CORES} cores", *(f"{figures[name]:,.0f}" for name in FIGURES)


class _Figures:
    """A receiver of one job's figures. A failure ends the measurement."""

    def __init__(self) -> None:
        self.figures: Figures = {}

    def measured(self, measurement: str, figures: Figures) -> None:
        self.figures |= figures

    def failed(self, measurements: Sequence[str], error: Exception) -> None:
        raise error
