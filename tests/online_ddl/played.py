"""The program `python -m tests.online_ddl.played`: the statements of a tool, with copies of rows.

pt-online-schema-change keeps its copy right by triggers. gh-ost and spirit read changed keys from the binlog.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial

from pymysql.cursors import Cursor

from incsnap.tables import TableId, quote
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.online_ddl.copying import FollowedTable, copy_rows, kept_columns
from tests.support import online_runs

#: Statements of pt-online-schema-change that make the copy and alter it.
_MADE = 2
#: Seconds for a statement. LOCK TABLES and RENAME wait for all transactions of the writer.
_STATEMENT_SECONDS = 600.0
#: Seconds between two rounds in which changed keys are read from the binlog.
_REPLAY_SECONDS = 1.0
#: Pause between the two renames of a two-step cut-over. gh-ost has none, and a job is rarely killed in so short a time.
BETWEEN_HALVES_SECONDS = 4.0
#: RENAME TABLE, or ALTER TABLE with a new name of the table alone.
_SWAP = re.compile(r"RENAME\b|ALTER .* RENAME `\w+`$", re.IGNORECASE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.online_ddl.played", description=__doc__)
    parser.add_argument("tool", choices=PLAYED)
    for name in ("host", "port", "user", "password", "database", "table", "alter"):
        parser.add_argument(name)
    asked = parser.parse_args()
    mysql = MySqlAddress(asked.host, int(asked.port), asked.user, asked.password)
    table = TableId(asked.database, asked.table)
    with (
        closing(connect(mysql, read_timeout=_STATEMENT_SECONDS, database=table.database)) as connection,
        connection.cursor() as cursor,
    ):
        PLAYED[asked.tool](mysql, cursor, table, asked.alter)


def pt_osc(_: MySqlAddress, cursor: Cursor, table: TableId, alter: str) -> None:
    """Play pt-online-schema-change."""
    cursor.execute(f"SHOW CREATE TABLE {table.sql}")
    text = cursor.fetchall()[0][1]
    body = text[text.index("(") + 1 : text.rindex(")")].strip()
    for statement in online_runs.pt_osc(*_names(table), alter, definition=body)[:_MADE]:
        cursor.execute(statement)
    copy = f"`_{table.table}_new`"
    # Columns that the alteration drops or renames are not copied.
    columns = {old: new for old, new in kept_columns(cursor, table.sql, copy, alter).items() if old == new}
    named = ", ".join(map(quote, columns))
    for statement in online_runs.pt_osc(*_names(table), alter, definition=body, columns=named)[_MADE:]:
        if statement.startswith("RENAME"):
            copy_rows(cursor, table.sql, copy, columns)
        cursor.execute(statement)


def spirit(mysql: MySqlAddress, cursor: Cursor, table: TableId, alter: str) -> None:
    """Play spirit. It writes where it is into its checkpoint."""
    copy, checkpoint = f"`_{table.table}_new`", f"`_{table.table}_chkpnt`"

    def tick() -> None:
        cursor.execute(f"REPLACE INTO {checkpoint} (id, copier_watermark, statement) VALUES (1, '{{}}', %s)", (alter,))

    _play(mysql, cursor, table, copy, alter, online_runs.spirit(*_names(table), alter), tick)


def gh_ost(mysql: MySqlAddress, cursor: Cursor, table: TableId, alter: str, *, two_step: bool = False) -> None:
    """Play gh-ost, whose changelog has a heartbeat. Between the two renames of a two-step cut-over is a pause."""

    def tick() -> None:
        cursor.execute(
            f"INSERT INTO `_{table.table}_ghc` (hint, value) VALUES ('heartbeat', NOW(6))"
            " ON DUPLICATE KEY UPDATE value = NOW(6)"
        )

    statements = online_runs.gh_ost(*_names(table), alter, two_step=two_step)
    _play(mysql, cursor, table, f"`_{table.table}_gho`", alter, statements, tick)


def _play(
    mysql: MySqlAddress,
    cursor: Cursor,
    table: TableId,
    copy: str,
    alter: str,
    statements: list[str],
    tick: Callable[[], None],
) -> None:
    """Play a tool that reads changed keys from the binlog, and swaps under a lock of both tables.

    `tick` writes into the tool's own table behind each chunk.
    """
    swaps = [number for number, sql in enumerate(statements) if _SWAP.match(sql)]
    for statement in statements[: swaps[0]]:
        cursor.execute(statement)
    columns = kept_columns(cursor, table.sql, copy, alter)
    followed = FollowedTable(mysql, cursor, table, copy, columns)
    next_replay = time.monotonic()

    def behind_chunk() -> None:
        nonlocal next_replay
        tick()
        if time.monotonic() >= next_replay:
            followed.replay()
            next_replay = time.monotonic() + _REPLAY_SECONDS

    copy_rows(cursor, table.sql, copy, columns, verb="INSERT IGNORE", behind_chunk=behind_chunk)
    followed.replay_most()
    cursor.execute(f"LOCK TABLES {table.sql} WRITE, {copy} WRITE")
    followed.replay()
    for number in swaps:
        if number != swaps[0]:
            time.sleep(BETWEEN_HALVES_SECONDS)
        cursor.execute(statements[number])
    cursor.execute("UNLOCK TABLES")
    for statement in statements[swaps[-1] + 1 :]:
        cursor.execute(statement)


def _names(table: TableId) -> tuple[str, str]:
    return table.database, table.table


PLAYED: dict[str, Callable[..., None]] = {
    "pt-osc": pt_osc,
    "spirit": spirit,
    "gh-ost": gh_ost,
    "gh-ost-two-step": partial(gh_ost, two_step=True),
}

if __name__ == "__main__":
    main()
