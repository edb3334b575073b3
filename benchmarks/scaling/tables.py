"""The model's results as Markdown tables, for docs/scaling.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.scaling.costs import Costs
from benchmarks.scaling.growth import Cluster, Stream, flow, limits, needed, snapshot_rows_a_second
from benchmarks.scaling.steps import PARTITIONS, TABLES

#: A workload that a small machine can carry. The other workloads are 10, 100 and 1,000 times as large.
_ONE = Stream(changes_a_second=100, tables=10, partitions=1)
_ROWS = 10_000_000
_KINDS = {"large": "transactions of 1,000 rows", "single": "transactions of one row"}


def as_text(costs: Costs) -> str:
    """Return all tables of docs/scaling.md."""
    return "\n\n".join(
        [
            table(("step", "of transactions of 1,000 rows", "of one row"), _steps(costs)),
            table(("a batch with a change of each of", *_TABLE_HEADS), _many_tables(costs)),
            table(("a transaction over", "seconds"), _many_partitions(costs)),
            table(
                ("a second, at most", *(f"{slots} slots, {buckets} buckets" for slots, buckets in _SIZES)), _most(costs)
            ),
            table(("changes/s", "tables", "partitions", "needs", "a batch", "a change comes after"), _growth(costs)),
            table(("rows", "readers and buckets", "time, nobody writing"), _snapshots(costs)),
        ]
    )


_SIZES = ((2, 1), (4, 2), (16, 8), (64, 32))
_TABLE_HEADS = ("planner", "source task", "sink task", "parts", "offset")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _steps(costs: Costs) -> Iterable[Sequence[str]]:
    for step, title in (
        ("planner", "planner: a change read from the socket, put into a batch"),
        ("source", "source task: decoded and encoded"),
        ("sink", "sink task: sent, its processor time"),
        ("sink.elapsed", "sink task: sent and committed"),
    ):
        yield title, *(f"{costs[f'{step}.{kind}'] * 1e6:.1f} µs" for kind in _KINDS)
    for step, title in (("bytes.binlog", "binlog of a change"), ("bytes.record", "its record")):
        yield title, *(f"{costs[f'{step}.{kind}']:.0f} bytes" for kind in _KINDS)
    chunk, release = costs["chunk"] * 1e6, costs["release.elapsed"] * 1e6
    yield (
        "reader: a row of a chunk, its processor time / elapsed",
        f"{chunk:.1f} / {costs['chunk.elapsed'] * 1e6:.1f} µs",
        "",
    )
    yield "sink task: a row of a window sent", f"{release:.1f} µs", ""
    yield "binlog inside parts, by Spark's driver to two executors", f"{1e-6 / costs['travel.elapsed']:.0f} MB/s", ""


def _many_tables(costs: Costs) -> Iterable[Sequence[str]]:
    for tables in TABLES:
        milliseconds = (costs[f"tables.{step}.{tables}"] * 1e3 for step in ("planner", "source", "sink.elapsed"))
        sizes = (costs[f"tables.{step}.{tables}"] / 1e3 for step in ("parts", "offset"))
        yield f"{tables:,} tables", *(f"{each:.1f} ms" for each in milliseconds), *(f"{each:.1f} kB" for each in sizes)


def _many_partitions(costs: Costs) -> Iterable[Sequence[str]]:
    for partitions in PARTITIONS:
        yield f"{partitions:,} partitions", f"{costs[f'partitions.sink.elapsed.{partitions}'] * 1e3:.1f} ms"


def _most(costs: Costs) -> Iterable[Sequence[str]]:
    for kind, title in _KINDS.items():
        of_size = [limits(costs, Cluster(slots, buckets), kind) for slots, buckets in _SIZES]
        for part in of_size[0]:
            yield f"{part}, {title}", *(f"{each[part]:,.0f}" for each in of_size)


def _growth(costs: Costs) -> Iterable[Sequence[str]]:
    for times in (1, 10, 100, 1_000):
        for kind in _KINDS:
            stream = Stream(_ONE.changes_a_second * times, _ONE.tables * times, _ONE.partitions * times, kind)
            cluster = needed(costs, stream)
            name = f"{stream.changes_a_second:,.0f}, {_KINDS[kind]}"
            sizes = f"{stream.tables:,}", f"{stream.partitions:,}"
            if cluster is None:
                most = limits(costs, Cluster(), kind)
                least = min((part for part in most if not part.endswith("tasks")), key=lambda part: most[part])
                yield name, *sizes, f"several jobs: {least} ends at {most[least]:,.0f}", "", ""
                continue
            stream_flow = flow(costs, cluster, stream)
            assert stream_flow.lag_seconds is not None
            yield (
                name,
                *sizes,
                f"{cluster.slots} slots, {cluster.buckets} buckets",
                f"{stream_flow.batch_seconds * 1e3:.0f} ms",
                f"{stream_flow.lag_seconds * 1e3:.0f} ms",
            )


def _snapshots(costs: Costs) -> Iterable[Sequence[str]]:
    for times in (1, 10, 100, 1_000):
        for readers, buckets in ((2, 1), (16, 8)):
            rate = snapshot_rows_a_second(costs, Cluster(readers=readers, buckets=buckets))
            hours = _ROWS * times / rate / 3600
            yield (
                f"{_ROWS * times:,}",
                f"{readers}, {buckets}",
                f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.1f} min",
            )
