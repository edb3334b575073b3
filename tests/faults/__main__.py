"""Faults of a job and its servers, row by row, under writers and snapshots. Then topics are compared with tables.

    python -m tests.faults                          all rows, 200 faults: about an hour
    python -m tests.faults --only planner,failover --faults 20 --seed 7
    python -m tests.faults --list

The exit code is 1 if a record was lost, came twice or went back in time, or if the job did not go on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import mkdtemp

from lab.progress import tell
from tests.faults.fault_servers import fault_servers
from tests.faults.matrix import Outcome, rows, run, shares, table


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="ROW,ROW")
    parser.add_argument("--faults", type=int, default=200, help="of all rows together; each row has two at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--hold",
        dest="longest_hold",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="for which something is stopped",
    )
    parser.add_argument("--rows", type=int, default=12_000, help="of the largest table")
    parser.add_argument("--list", action="store_true", help="the rows, and nothing else")
    asked = parser.parse_args()
    known = rows(asked.longest_hold)
    if asked.list:
        sys.stdout.write("".join(f"{name:16} {row.what}\n" for name, row in known.items()))
        return 0
    names = asked.only.split(",") if asked.only else list(known)
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(known)}")
    folder = Path(mkdtemp(prefix="incsnap-faults-"))
    outcomes: list[Outcome] = []
    plan = shares(names, known, asked.faults)
    try:
        with fault_servers() as servers:
            for outcome in run(servers, plan, known, asked.seed, folder, asked.rows, tell):
                outcomes.append(outcome)
                for wrong in outcome.wrong:
                    sys.stderr.write(f"{outcome.row}: {wrong}\n")
    finally:
        done = sum(each.faults for each in outcomes)
        sys.stdout.write(f"\nseed {asked.seed}, {done} faults\n\n{table(outcomes)}\n")
        sys.stdout.flush()
    if not any(each.wrong for each in outcomes):
        return 0
    sys.stderr.write(f"\nLogs and checkpoints of what was wrong are in {folder}.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
