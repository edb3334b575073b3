"""incsnap beside Debezium: the same servers, tables and measures, one after the other.

    python -m benchmarks                                          all rows, three runs each: 50 minutes
    python -m benchmarks --only latency --side incsnap --runs 1
    python -m benchmarks --only snapshot,backlog --rows 100000

Servers are found as the tests find them: INCSNAP_MYSQL and INCSNAP_KAFKA, else they are started.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import Results, processes, table, write
from benchmarks.rows import ROWS, Scale, chosen, measured
from benchmarks.runner import Runner
from benchmarks.sides import SIDES
from incsnap.sandbox.run_folder import run_folder
from incsnap.sandbox.servers import servers


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="ROW,ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--side", choices=(*SIDES, "both"), default="both")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=Scale().rows, help="of the table; the others are parts of it")
    parser.add_argument("--warm-up", type=float, default=Scale().warm_up_seconds, metavar="SECONDS")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="keep the table, the picture and all figures")
    asked = parser.parse_args()
    try:
        rows = chosen(asked.only)
    except ValueError as error:
        parser.error(str(error))
    if asked.runs < 1 or asked.rows < 1_000:
        parser.error("--runs must be 1 or more, --rows 1000 or more")
    if asked.results and importlib.util.find_spec("matplotlib") is None:
        parser.error("--results draws a picture, which needs matplotlib: pip install -e '.[bench]'")
    with servers() as found, run_folder() as folder:
        sides = SIDES if asked.side == "both" else (asked.side,)
        runner = Runner(found, folder, Scale(asked.rows, asked.warm_up), sides, asked.runs)
        try:
            runner.measure(measured(rows))
        finally:
            # Of a run that fails or is interrupted, what was measured is kept all the same.
            _tell(runner.results, rows, asked.results)


def _tell(results: Results, rows: Sequence[str], folder: Path | None) -> None:
    print(f"\n{table(results, rows)}\n")
    for what in ("snapshot", "backlog"):
        if "processor" in rows and (said := processes(results, what)):
            print(f"Processor seconds of each process, {what} of a million:\n{said}\n")
    if folder:
        from benchmarks.picture import draw

        write(results, rows, folder)
        draw(results, rows, folder / "figures.svg")
        print(f"Kept in {folder}.")


if __name__ == "__main__":
    main()
