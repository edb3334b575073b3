"""The cost of a change: in the planner, in a source task and in a sink task."""

from __future__ import annotations

import statistics
from functools import partial

from benchmarks.benchmark_database import BenchmarkDatabase, topics
from benchmarks.changes import updates
from benchmarks.scaling.planned_job import planned_job
from benchmarks.scaling.timing import ROUNDS


def of_changes(
    bench: BenchmarkDatabase, table: str, changes: int, transaction_rows: int, name: str
) -> dict[str, float]:
    """Return processor seconds and bytes for each change, as `step.name`. Transactions have `transaction_rows` rows.

    `name` identifies this size of transactions.
    """
    runs: list[dict[str, float]] = []
    for number in range(ROUNDS):
        prefix = f"{bench.database}-{name}{number}"
        with topics(bench.servers.kafka, prefix, {table: 1}), planned_job(bench, prefix) as job:
            write = updates(table, changes, transaction_rows)
            runs.append(job.catch_up(partial(write, bench.connection)))
    return {f"{key}.{name}": statistics.median(run[key] for run in runs) for key in runs[0]}
