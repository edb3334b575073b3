"""The model of a job of another size, from the costs of its steps. It is pure: nothing here is measured.

The planner plans a batch, source tasks decode it, and sink tasks send it. Spark adds a fixed time. The next batch takes
all changes that have come meanwhile, up to a limit of bytes, as in the job. Large slices of the binlog travel in files,
so Spark's driver is no part of the model.

The model assumes that Kafka and MySQL are as fast as in the measurement, and that the network and a shared folder cost
nothing. A real cluster is slower.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from benchmarks.scaling.costs import Costs

#: Seconds that Spark and small files add to a batch and that no step measures (docs/performance.md: 50 ms, less the
#: steps).
FIXED_SECONDS = 0.040
#: Most bytes of a batch's records (`planner.output_bound`).
BATCH_BYTES = 96 << 20
#: Batches after which a growing backlog is considered endless.
_BATCHES = 400


@dataclass(frozen=True, slots=True)
class Cluster:
    """The tasks of a job that run at a time."""

    slots: int = 2  #: source tasks, which decode
    buckets: int = 1  #: sink tasks, which send
    readers: int = 2  #: tasks that read chunks


@dataclass(frozen=True, slots=True)
class Stream:
    """The changes that a job must carry."""

    changes_a_second: float  #: changed rows
    tables: int = 1  #: most tables of a batch
    partitions: int = 1  #: most partitions that a batch writes to
    kind: str = "single"  #: `large`: transactions of 1,000 rows; `single`: of one row


class Flow(NamedTuple):
    """The state of a stream after a long time."""

    lag_seconds: float | None  #: from commit to consumer; None if the backlog grows without end
    batch_seconds: float  #: duration of a batch
    most_a_second: float  #: changes a second of full batches
    limit: str  #: the part of the job that carries the fewest changes a second


def limits(costs: Costs, cluster: Cluster, kind: str) -> dict[str, float]:
    """Return how many changes a second each part of the job could carry alone: the planner, source tasks and sink
    tasks."""
    return {
        "the planner: one binlog connection": 1 / costs[f"planner.{kind}"],
        "source tasks": cluster.slots / costs[f"source.{kind}"],
        "sink tasks": cluster.buckets / costs[f"sink.elapsed.{kind}"],
    }


def batch_seconds(costs: Costs, cluster: Cluster, stream: Stream, changes: float) -> float:
    """Return the seconds of a batch of `changes` changes, from its plan to its commit."""
    kind, tables = stream.kind, min(stream.tables, changes)
    partitions = min(stream.partitions, changes) / cluster.buckets
    seconds = FIXED_SECONDS + changes * costs[f"planner.{kind}"]
    seconds += changes * costs[f"source.{kind}"] / cluster.slots
    seconds += changes * costs[f"sink.elapsed.{kind}"] / cluster.buckets
    for step, shared in (("planner", 1), ("source", cluster.slots), ("sink.elapsed", cluster.buckets)):
        seconds += (costs.at(f"tables.{step}", max(1, tables)) - costs[f"tables.{step}.1"]) / shared
    transaction = costs.at("partitions.sink.elapsed", max(1, partitions)) - costs["partitions.sink.elapsed.1"]
    return seconds + transaction


def flow(costs: Costs, cluster: Cluster, stream: Stream) -> Flow:
    """Return the state of the stream after 400 batches. A change waits for half a batch, and then for its own batch."""
    most = BATCH_BYTES / costs[f"bytes.record.{stream.kind}"]
    full = batch_seconds(costs, cluster, stream, most)
    parts = limits(costs, cluster, stream.kind)
    limit = min(parts, key=lambda part: parts[part])
    waiting, seconds = 1.0, FIXED_SECONDS
    for _ in range(_BATCHES):
        taken = min(waiting, most)
        seconds = batch_seconds(costs, cluster, stream, taken)
        waiting = max(1.0, waiting - taken + stream.changes_a_second * seconds)
    behind = waiting > most
    return Flow(None if behind else 1.5 * seconds, seconds, most / full, limit)


def snapshot_rows_a_second(costs: Costs, cluster: Cluster) -> float:
    """Return the rows a second of a snapshot without other writes: the slower of reading and sending."""
    return min(cluster.readers / costs["chunk.elapsed"], cluster.buckets / costs["release.elapsed"])


def needed(costs: Costs, stream: Stream, most: int = 4096) -> Cluster | None:
    """Return the smallest cluster that keeps up with the stream, or None if none with at most `most` slots does.

    The cluster grows by doubling its slots or its buckets, whichever limits it. It never has more buckets than the
    stream has partitions.
    """
    cluster = Cluster(2, 1, 2)
    while cluster.slots <= most:
        if flow(costs, cluster, stream).lag_seconds is not None:
            return cluster
        parts = limits(costs, cluster, stream.kind)
        grown = "buckets" if parts["sink tasks"] <= parts["source tasks"] else "slots"
        wider = replace(cluster, **{grown: 2 * getattr(cluster, grown)})
        if wider.buckets > max(stream.partitions, 1):
            wider = replace(cluster, slots=2 * cluster.slots)
        cluster = wider
    return None
