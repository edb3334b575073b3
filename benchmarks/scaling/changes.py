"""A change: what the planner, a source's task and a sink's task take for it."""

from __future__ import annotations

import statistics
from functools import partial

from benchmarks.changes import updates
from benchmarks.place import Place, topics
from benchmarks.scaling.planned_job import planned_job
from benchmarks.scaling.timing import ROUNDS


def of_changes(place: Place, table: str, changes: int, transaction_rows: int, name: str) -> dict[str, float]:
    """Seconds of processor time a change, and bytes; in transactions of so many rows, which are called ``name``."""
    runs: list[dict[str, float]] = []
    for number in range(ROUNDS):
        prefix = f"{place.database}-{name}{number}"
        with topics(place.servers.kafka, prefix, {table: 1}), planned_job(place, prefix) as job:
            write = updates(table, changes, transaction_rows)
            runs.append(job.catch_up(partial(write, place.connection)))
    return {f"{key}.{name}": statistics.median(run[key] for run in runs) for key in runs[0]}
