"""A comparison of incsnap with Debezium: the same servers, tables and measures, one job after the other.

Debezium runs with its defaults and, as another side, at its best.

    python -m benchmarks                                          all rows, three runs each: an hour
    python -m benchmarks --only latency --side incsnap --runs 1
    python -m benchmarks --only snapshot,backlog --rows 100000

INCSNAP_MYSQL and INCSNAP_KAFKA name the servers, as for the tests. Without them servers are started.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.measured_jobs import SIDES
from benchmarks.outcome import FILE, failed, read
from benchmarks.rows import ROWS, Scale, chosen
from benchmarks.runner import Runner
from lab.run_folder import run_folder
from lab.servers import servers


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="ROW,ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument(
        "--side", action="append", choices=SIDES, help="measure this side alone; repeat the option for several sides"
    )
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
    # SIGTERM ends the run as Ctrl-C does: jobs and servers are stopped, and tables are dropped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if asked.results:
        _put_aside(asked.results)
    with servers(lasting=True) as started, run_folder() as folder:
        sides = tuple(side for side in SIDES if not asked.side or side in asked.side)

        def keep() -> None:
            if asked.results:
                # The file is read each time, because another run may have written other rows.
                everything = runner.outcome.over(read(asked.results))
                everything.write(asked.results)
                report.write(everything, asked.results)

        runner = Runner(started, folder, Scale(asked.rows, asked.warm_up), sides, asked.runs, keep)
        try:
            runner.measure(rows)
        finally:
            # A run that fails or is interrupted still prints what it has measured.
            _tell(runner, asked.results)
    if failed(runner.outcome):
        sys.exit("some runs failed: see above")


def _put_aside(folder: Path) -> None:
    """Rename a file of results with another format version.

    If the version is equal, the file stays for rows not measured now.
    """
    try:
        read(folder)
    except ValueError as error:
        aside = (folder / FILE).rename(folder / f"before-{FILE}")
        sys.stderr.write(f"{error}: it is {aside} now, its rows are not in the new table\n")


def _tell(runner: Runner, folder: Path | None) -> None:
    sys.stdout.write("\n\n".join(["", report.table(runner.outcome), *report.sections(runner.outcome), ""]))
    parts = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in runner.elapsed.items())
    print(f"Elapsed: {sum(runner.elapsed.values()) / 60:.1f} minutes ({parts})")
    if folder and runner.outcome.rows:
        from benchmarks.picture import draw

        draw(read(folder), folder / report.PICTURE)
        print(f"Kept in {folder}.")


if __name__ == "__main__":
    main()
