"""Seams between Debezium and incsnap, in both directions, at random moments. Then topics are compared with tables.

    python -m tests.seams --seams 12 --seed 7 --only json,8,eos
    python -m tests.seams --list

A round has one connector, whose topics both engines continue by turns. Its kind is a shape of records, a number of
partitions, and whether Kafka Connect writes exactly once. The exit code is 1 if a record was lost, came twice or went
back in time.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from lab.fetched_registry import registry
from lab.progress import tell
from lab.servers import servers
from tests.seams.ledger_round import play_round
from tests.seams.plan import ENDS, Outcome, Plan
from tests.seams.shapes import shapes
from tests.seams.table import table

#: Shape, partitions, exactly once.
KINDS = [(shape, count, once) for shape in ("json", "avro", "unwrap", "routed") for count in (1, 8) for once in (0, 1)]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.seams", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seams", type=int, default=100, help="of all rounds together, in both directions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="KIND,KIND", help="rounds whose names have all of these words")
    parser.add_argument("--ends", default=",".join(ENDS), metavar="END,END", help="how the connector ends, by turns")
    parser.add_argument("--seconds", type=float, default=3_600.0, help="after which a round begins no further seams")
    parser.add_argument("--list", action="store_true", help="the rounds, and nothing else")
    asked = parser.parse_args()
    words = [word for word in asked.only.split(",") if word]
    kinds = [kind for kind in KINDS if all(word in _name(kind).split() for word in words)]
    if asked.list or not kinds:
        sys.stdout.write("".join(f"{_name(kind)}\n" for kind in KINDS))
        return 0 if asked.list else 2
    folder, random = Path(mkdtemp(prefix="incsnap-seams-")), Random(asked.seed)
    outcomes: list[Outcome] = []
    try:
        with ExitStack() as stack:
            started = stack.enter_context(servers())
            url = stack.enter_context(registry()) if any(kind[0] == "avro" for kind in kinds) else ""
            known = shapes(url)
            for shape, partitions, once in kinds:
                plan = Plan(known[shape], partitions, bool(once), tuple(asked.ends.split(",")))
                place = folder / _name((shape, partitions, once)).replace(" ", "-")
                seams = max(2, asked.seams // len(kinds))
                outcome = play_round(started.mysql, started.kafka, plan, seams, random, place, asked.seconds)
                outcomes.append(outcome)
                tell(f"{outcome.name}: {outcome.seams} seams, {len(outcome.wrong)} faults, {outcome.seconds:.0f} s")
                for wrong in outcome.wrong:
                    sys.stderr.write(f"{outcome.name}: {wrong}\n")
    finally:
        sys.stdout.write(f"\nseed {asked.seed}\n\n{table(outcomes)}\n")
        sys.stdout.flush()
    if not any(each.wrong for each in outcomes):
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    sys.stderr.write(f"\nLogs and checkpoints are in {folder}.\n")
    return 1


def _name(kind: tuple[str, int, int]) -> str:
    shape, partitions, once = kind
    return f"{shape} {partitions} {'eos' if once else 'plain'}"


if __name__ == "__main__":
    sys.exit(main())
