"""The measurement of each step's cost: the job's own code in one process, without Spark, on real servers.

Processor seconds are those of this process with all its threads. Elapsed seconds include the servers.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.benchmark_database import BenchmarkDatabase
from benchmarks.scaling.changes import of_changes
from benchmarks.scaling.chunks import of_chunk
from benchmarks.scaling.costs import Costs
from benchmarks.scaling.driver import of_travel
from benchmarks.scaling.widths import of_partitions, of_tables
from benchmarks.tables import ORDERS

#: Numbers of tables of a batch, and of partitions of a transaction, at which their costs are measured.
TABLES = (1, 100, 1_000)
PARTITIONS = (1, 10, 100, 1_000)


def measure(bench: BenchmarkDatabase, rows: int, say: Callable[[str], None]) -> Costs:
    """Measure all steps and return their costs. `rows` is the size of the table that is changed and read."""
    orders = bench.create(ORDERS, "orders", rows)
    figures: dict[str, float] = {}
    for name, transaction_rows, share in (("large", 1_000, 1.0), ("single", 1, 0.25)):
        say(f"changes in transactions of {transaction_rows} rows")
        figures |= of_changes(bench, orders, int(rows * share), transaction_rows, name)
    say("a chunk")
    figures |= of_chunk(bench, orders)
    say("Spark's driver")
    figures |= of_travel()
    for tables in TABLES:
        say(f"a batch that touches {tables} tables")
        figures |= of_tables(bench, tables)
    for partitions in PARTITIONS:
        say(f"a transaction over {partitions} partitions")
        figures |= of_partitions(bench, partitions)
    return Costs(figures)
