"""The program that runs MySQL's own test files: a job reads each, with all names in table maps and with none.

`python -m tests.mysql_files` runs all files of the lane (CONTRIBUTING.md). It fails if a job stops or sends a wrong
row.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import click

from lab.servers import servers
from tests.mysql_files.fetched import mysql_test_files
from tests.mysql_files.lane import Lane, Run
from tests.mysql_files.script import ServerEnded

_FOLDERS = ("t", "suite/gcol/t", "suite/parts/t", "suite/innodb/t")
_CONCERN = re.compile(r"alter|part|foreign|fk|trigger|gcol|generated|virtual|rename|create|ddl|instant|cascade")
#: Files that wait for other sessions, kill the server, or import files of older ones.
_LEFT_OUT = re.compile(r"debug|sync|crash|kill|recover|import|_old|upgrade")
#: The server's data need not survive a crash.
_FAST = ("--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF")


@dataclass
class Totals:
    """Figures of all files, and the failures."""

    figures: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, name: str, full: Run, minimal: Run) -> None:
        """Add the two runs of a file."""
        self.figures.update(
            {
                "files": 1,
                "statements": full.taken + minimal.taken,
                "changes of rows with names": len(full.changes),
                "changes of rows without names": len(minimal.changes),
                "tables compared with their rows": full.agreed,
                "statements about tables": len(minimal.definitions),
                "followed": minimal.followed,
            }
        )
        faults = [f"stopped: {run.stop}" for run in (full, minimal) if run.stop]
        faults += [f"rows differ: {each}" for each in full.differences]
        faults += [f"without names: {each}" for each in _unequal(full, minimal)]
        self.faults += [f"{name}: {each}" for each in faults]
        lost = [f"not followed: {each}" for each in minimal.definitions.values() if each]
        _say(f"{name}: {full.taken} statements, {len(full.changes)} changes, {minimal.followed} of"
             f" {len(minimal.definitions)} followed{', time is up' if full.late else ''}")  # fmt: skip
        for each in [*faults, *lost, *(f"warning: {each}" for each in minimal.warnings)]:
            _say(f"    {each}")


def _unequal(full: Run, minimal: Run) -> list[str]:
    """Return some changes that only one of the two jobs sent. Rows that were left out with a warning may be missing."""
    surplus = Counter((each.table, *each.content) for each in minimal.changes)
    surplus.subtract((each.table, *each.content) for each in full.changes)
    lacking = Counter() if minimal.warnings or minimal.stop else -surplus
    return [f"surplus: {each}" for each in list(+surplus)[:3]] + [f"missing: {each}" for each in list(lacking)[:3]]


@click.command()
@click.option("--only", default="", help="Regular expression of the paths of files; all files of the lane without it.")
@click.option("--seconds", default=60.0, help="Time that the statements of one file may take.")
def main(only: str, seconds: float) -> None:
    """Run MySQL's own test files, and judge what jobs make of their binlog."""
    folder = mysql_test_files()
    files = _files(folder, only)
    totals, began = Totals(), time.monotonic()
    while files:
        with servers(mysql_options=_FAST) as started:
            lane = Lane(started, folder, seconds)
            while files:
                file = files.pop(0)
                name = str(file.relative_to(folder))
                try:
                    full = lane.run(file, "FULL")
                    totals.add(name, full, lane.run(file, "MINIMAL", full.taken + full.refused))
                except ServerEnded as ended:
                    totals.figures["files that ended the server"] += 1
                    _say(f"{name}: the server ended by {str(ended)[:300]!r}")
                    break
    _say(", ".join(f"{name}: {count}" for name, count in totals.figures.items()))
    _say(f"{len(totals.faults)} faults in {time.monotonic() - began:.0f} s")
    for fault in totals.faults:
        _say(fault)
    sys.exit(bool(totals.faults))


def _files(folder: Path, only: str) -> list[Path]:
    """Return the test files of the lane whose path matches."""
    files = [file for each in _FOLDERS for file in sorted((folder / each).glob("*.test"))]
    names = {file: str(file.relative_to(folder)) for file in files}
    return [
        file
        for file, name in names.items()
        if _CONCERN.search(name) and not _LEFT_OUT.search(name) and re.search(only, name)
    ]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
