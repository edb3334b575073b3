"""What a job of another size would do, from the costs of its steps. Pure; nothing in it is measured.

A batch is planned, decoded by the source's tasks, sent by the buckets' tasks, and Spark adds a fixed time; the next one
takes what has come meanwhile. A batch has so many bytes at most, as in the job. Kafka and MySQL are as quick as they
were when the steps were measured, and the network and a shared folder cost nothing: a real cluster is slower. Large
slices of the binlog go to tasks by files, so Spark's driver is no part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from benchmarks.scaling.costs import Costs

#: What a batch takes of Spark and of small files, and no step measures (docs/performance.md: 50 ms, less the steps).
FIXED_SECONDS = 0.040
#: Records of a batch, at most (``planner.output_bound``).
BATCH_BYTES = 96 << 20
#: Batches until a queue that grows is taken for one that grows for ever.
_BATCHES = 400


@dataclass(frozen=True, slots=True)
class Cluster:
    """``slots`` decode, ``buckets`` send, ``readers`` read chunks."""

    slots: int = 2
    buckets: int = 1
    readers: int = 2


@dataclass(frozen=True, slots=True)
class Stream:
    """``tables`` and ``partitions`` that a batch writes to, at most; ``kind``: ``large`` transactions, or ``single``
    rows."""

    changes_a_second: float
    tables: int = 1
    partitions: int = 1
    kind: str = "single"


class Flow(NamedTuple):
    """``lag_seconds``: None where the job falls behind for ever."""

    lag_seconds: float | None
    batch_seconds: float
    most_a_second: float
    limit: str


def limits(costs: Costs, cluster: Cluster, kind: str) -> dict[str, float]:
    """Changes a second that each part of the way can carry, if it were alone."""
    return {
        "the planner: one binlog connection": 1 / costs[f"planner.{kind}"],
        "source tasks": cluster.slots / costs[f"source.{kind}"],
        "sink tasks": cluster.buckets / costs[f"sink.elapsed.{kind}"],
    }


def batch_seconds(costs: Costs, cluster: Cluster, stream: Stream, changes: float) -> float:
    """A batch of so many changes, from its plan to its commit."""
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
    """How the stream goes when it has gone on for long: a change waits for half a batch, and then for its own."""
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
    """While nobody writes: the readers, or the tasks that send what they have read."""
    return min(cluster.readers / costs["chunk.elapsed"], cluster.buckets / costs["release.elapsed"])


def needed(costs: Costs, stream: Stream, most: int = 4096) -> Cluster | None:
    """The smallest cluster (slots and buckets doubled in turn) that keeps up; None where none does."""
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
