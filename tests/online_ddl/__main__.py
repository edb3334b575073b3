"""A table that is altered online beside a job, a snapshot of the table and a writer. Then topics are compared.

    python -m tests.online_ddl --tool gh-ost --rows 200000
    python -m tests.online_ddl --tool played --kill behind

A real tool must be on PATH. Without one, `played` sends the statements of pt-online-schema-change. The exit code is 1
if a tool's table has a topic, if the table has not exactly one schema change, or if `incsnap verify` finds a
difference. It is also 1 if the job was not killed at the moment that `--kill` asks for.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp

from lab.captured_database import captured_database
from lab.progress import tell
from lab.servers import servers
from lab.table_designs import ORDERS
from tests.online_ddl.run import KILLS, Result, play
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
    asked = parser.parse_args()
    folder, results = Path(mkdtemp(prefix="incsnap-online-ddl-")), list[Result]()
    with ExitStack() as stack:
        started = stack.enter_context(servers())
        for number, alter in enumerate(asked.alter or ALTERS):
            place = folder / str(number)
            place.mkdir()
            name = f"online{number}"
            with captured_database(started.mysql, started.kafka, name, name, place) as captured:
                table = captured.create(ORDERS, asked.rows)
                # The writer does not know this column.
                with captured.connect() as connection, connection.cursor() as cursor:
                    cursor.execute(f"ALTER TABLE {table.sql} ADD COLUMN legacy INT NULL DEFAULT 1")
                tell(f"{asked.rows} rows are in place")
                results.append(play(captured, table, TOOLS[asked.tool], alter, asked.rate, kills=asked.kill))
    for result in results:
        sys.stdout.write(f"{result.name}: {result.seconds:.0f} s, {result.written} rows changed\n")
        sys.stdout.writelines(f"  hit: {case}\n" for case in result.hit)
        sys.stdout.writelines(f"  WRONG: {fault}\n" for fault in result.wrong)
    if any(result.wrong for result in results):
        sys.stdout.write(f"Logs and checkpoints are in {folder}.\n")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
