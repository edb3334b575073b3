"""The tools for online schema changes that the ledger runs: real ones on PATH, and ones whose statements are played."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from incsnap.tables import TableId
from lab.addresses import MySqlAddress

#: Returns the command that alters a table.
_Command = Callable[[MySqlAddress, TableId, str], list[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool for online schema changes."""

    name: str  #: as the option --tool has it
    command: _Command  #: how it is called
    has_halves: bool = False  #: whether it swaps the tables by two renames, one after the other
    pauses: bool = False  #: whether it waits between these renames by itself

    def started(self, mysql: MySqlAddress, table: TableId, alter: str, log: Path) -> subprocess.Popen[bytes]:
        """Start the tool. `alter`: what stands behind ALTER TABLE and the table's name."""
        with log.open("ab") as output:
            command = self.command(mysql, table, alter)
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def _gh_ost(mysql: MySqlAddress, table: TableId, alter: str) -> list[str]:
    return [
        "gh-ost",
        f"--host={mysql.host}",
        f"--port={mysql.port}",
        f"--user={mysql.user}",
        f"--password={mysql.password}",
        f"--database={table.database}",
        f"--table={table.table}",
        f"--alter={alter}",
        "--allow-on-master",
        "--assume-rbr",
        "--approve-renamed-columns",
        "--chunk-size=5000",
        # With gh-ost's default of 10 a thousand changed rows a second leave no time to copy.
        "--dml-batch-size=100",
        "--ok-to-drop-table",
        "--initially-drop-ghost-table",
        "--initially-drop-old-table",
        "--execute",
    ]


def _two_step(mysql: MySqlAddress, table: TableId, alter: str) -> list[str]:
    return [*_gh_ost(mysql, table, alter), "--cut-over=two-step"]


def _pt_osc(mysql: MySqlAddress, table: TableId, alter: str) -> list[str]:
    place = f"h={mysql.host},P={mysql.port},u={mysql.user},p={mysql.password},D={table.database},t={table.table}"
    return [
        "pt-online-schema-change",
        f"--alter={alter}",
        "--no-version-check",
        "--recursion-method=none",
        # The tool counts rows by EXPLAIN's older form, which is not MySQL 9's default. Else the table is one chunk.
        "--set-vars=explain_format=TRADITIONAL",
        "--chunk-size=2000",
        "--sleep=0.05",
        "--execute",
        place,
    ]


def _spirit(mysql: MySqlAddress, table: TableId, alter: str) -> list[str]:
    return [
        "spirit",
        "migrate",
        f"--host={mysql.host}:{mysql.port}",
        f"--username={mysql.user}",
        f"--password={mysql.password}",
        f"--database={table.database}",
        f"--statement=ALTER TABLE `{table.table}` {alter}",
        # More threads leave a writer 300 changes a second on two cores.
        "--threads=1",
        "--write-threads=1",
    ]


def _played(tool: str, mysql: MySqlAddress, table: TableId, alter: str) -> list[str]:
    place = [mysql.host, str(mysql.port), mysql.user, mysql.password, table.database, table.table]
    return [sys.executable, "-m", "tests.online_ddl.played", tool, *place, alter]


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("gh-ost", _gh_ost),
        Tool("gh-ost-two-step", _two_step, has_halves=True),
        Tool("pt-osc", _pt_osc),
        Tool("spirit", _spirit),
        Tool("played", partial(_played, "pt-osc")),
        Tool("played-gh-ost", partial(_played, "gh-ost")),
        Tool("played-gh-ost-two-step", partial(_played, "gh-ost-two-step"), has_halves=True, pauses=True),
        Tool("played-spirit", partial(_played, "spirit")),
    )
}
