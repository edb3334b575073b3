"""A model of how the job grows, from the costs of its steps.

    python -m benchmarks.scaling              print the tables, from the costs in benchmarks/scaling/costs.json
    python -m benchmarks.scaling --measure    measure the costs on real servers first, and keep them
    python -m benchmarks.scaling --workers    instead measure a whole job on clusters of 1, 2 and 4 workers

All workers of these clusters are on this machine.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.about import machine
from benchmarks.benchmark_database import benchmark_database
from benchmarks.rows import Scale
from benchmarks.scaling import costs, tables, workers
from benchmarks.scaling.steps import measure
from lab.run_folder import run_folder
from lab.servers import servers


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--workers", action="store_true")
    parser.add_argument("--rows", type=int, default=200_000, help="of the table that is changed and read")
    asked = parser.parse_args()
    if asked.workers:
        with servers(lasting=True) as started, run_folder() as folder:
            by_number = workers.of_workers(started, folder, Scale(rows=asked.rows), _say)
        print(tables.table(("workers", *workers.FIGURES.values()), workers.rows(by_number)))
        return
    if asked.measure:
        with servers(lasting=True) as started, run_folder() as folder, benchmark_database(started, folder) as database:
            measured = measure(database, asked.rows, _say)
        costs.Costs(measured.figures, machine()).write()
    print(tables.as_text(costs.read()))


def _say(text: str) -> None:
    print(f"measuring {text}", file=sys.stderr)


if __name__ == "__main__":
    main()
