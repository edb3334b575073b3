"""A table that is altered online beside a job, a snapshot of the table and a writer. Then topics are compared.

    python -m tests.online_ddl --tool gh-ost --rows 200000
    python -m tests.online_ddl --tool played --kill behind

A real tool must be on PATH. The others send the statements of a tool: `played` those that pt-online-schema-change
sends, `played-gh-ost`, `played-gh-ost-two-step` and `played-spirit` those that their names say. With `--lake` a query
of `incsnap.merge_into` keeps a lake's table beside the run.

The exit code is 1 if something is wrong. A tool's table has a topic, or the table has not exactly one schema change, or
`incsnap verify` finds a difference, or the lake's table has one.

The exit code is 3 if nothing is wrong, and a run has missed one of its cases.

The cases are a snapshot under way at the swap, a window in flight at the swap, and old rows read again. With `--kill`
the job must be killed at that moment, too. The last line is JSON, with the hits and the runs of each case.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp

from incsnap.errors import IncsnapError
from lab.captured_database import captured_database
from lab.fetched_lake import LAKES, Lake
from lab.progress import tell
from lab.servers import Servers, servers
from lab.table_designs import ORDERS
from tests.online_ddl.result import EXIT_CODES, WRONG, Result, json_line, sums, verdict_of
from tests.online_ddl.run import KILLS, play
from tests.online_ddl.tools import TOOLS

#: Alterations of the table `orders`, by turns.
ALTERS = (
    "ADD COLUMN memo VARCHAR(20) NOT NULL DEFAULT 'none'",
    "DROP COLUMN legacy",
    "MODIFY qty BIGINT NULL",
    "CHANGE legacy former BIGINT NULL",
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.online_ddl", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tool", choices=TOOLS, default="played")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rate", type=float, default=1_000.0, help="changed rows a second")
    parser.add_argument("--alter", action="append", help="what stands behind ALTER TABLE orders; several: by turns")
    at = ", ".join(f"{name}: {when}" for name, when in KILLS.items())
    parser.add_argument("--kill", choices=KILLS, default="", help=f"kill the job once ({at})")
    parser.add_argument("--lake", choices=LAKES, default="", help="keep a lake's table of this format beside the job")
    parser.add_argument(
        "--snapshot-rate", type=int, default=0, help="most rows a second of the snapshot before the swap"
    )
    parser.add_argument("--runs", type=int, default=1, help="how often all alterations are run")
    asked = parser.parse_args()
    if asked.kill == "halves" and not TOOLS[asked.tool].has_halves:
        parser.error(f"--kill halves: {asked.tool} swaps the tables by one statement")
    lake = LAKES[asked.lake] if asked.lake else None
    if lake is not None:
        # The lake's Spark is fetched before MySQL is loaded.
        lake.environment()
    folder, results = Path(mkdtemp(prefix="incsnap-online-ddl-")), list[Result]()
    for number in range(asked.runs):
        # Servers of their own for each turn: the binlog of one turn has gigabytes.
        with servers() as started:
            for alter in asked.alter or ALTERS:
                place = folder / f"{number}-{len(results)}"
                place.mkdir()
                results.append(_run(started, asked, alter, lake, place, f"online{len(results)}"))
                sys.stdout.write("\n".join(results[-1].lines()) + "\n")
                sys.stdout.flush()
    verdict = verdict_of(results)
    if verdict == WRONG:
        sys.stdout.write(f"Logs and checkpoints are in {folder}.\n")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.writelines(f"hit {hit} of {of}: {case}\n" for case, (hit, of) in sums(results).items())
    given = {name: getattr(asked, name) for name in ("tool", "kill", "lake", "rows", "rate")}
    sys.stdout.write(f"{json_line(results, **given)}\n")
    return EXIT_CODES[verdict]


def _run(started: Servers, asked: argparse.Namespace, alter: str, lake: Lake | None, place: Path, name: str) -> Result:
    """Run the tool once. An error of the job or of the servers is a result, so that other runs go on."""
    tool = TOOLS[asked.tool]
    try:
        with captured_database(started.mysql, started.kafka, name, name, place) as captured:
            table = captured.create(ORDERS, asked.rows)
            # The writer does not know this column.
            with captured.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"ALTER TABLE {table.sql} ADD COLUMN legacy INT NULL DEFAULT 1")
            tell(f"{asked.rows} rows are in place")
            limit = asked.snapshot_rate
            return play(captured, table, tool, alter, asked.rate, kills=asked.kill, lake=lake, snapshot_rate=limit)
    except IncsnapError as error:
        return Result(f"{tool.name}, {alter}", wrong=[str(error)])


if __name__ == "__main__":
    sys.exit(main())
