"""The program `python -m tests.online_ddl.played`: the statements of pt-online-schema-change, with copies of rows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing

import pymysql
from pymysql.cursors import Cursor

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.online_runs import pt_osc

_CHUNK = 5_000
_DEADLOCK = 1213
#: Statements that make the copy and alter it.
_MADE = 2


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.online_ddl.played", description=__doc__)
    for name in ("host", "port", "user", "password", "database", "table", "alter"):
        parser.add_argument(name)
    asked = parser.parse_args()
    mysql = MySqlAddress(asked.host, int(asked.port), asked.user, asked.password)
    with closing(connect(mysql, database=asked.database)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW CREATE TABLE `{asked.table}`")
        text = cursor.fetchall()[0][1]
        body = text[text.index("(") + 1 : text.rindex(")")].strip()
        for statement in pt_osc(asked.database, asked.table, asked.alter, definition=body)[:_MADE]:
            cursor.execute(statement)
        copy = f"`_{asked.table}_new`"
        # Columns that the alteration drops are not copied.
        tables = (f"`{asked.table}`", copy)
        columns, kept = (columns_of(cursor, table) for table in tables)
        columns = [column for column in columns if column in kept]
        named = ", ".join(f"`{column}`" for column in columns)
        for statement in pt_osc(asked.database, asked.table, asked.alter, definition=body, columns=named)[_MADE:]:
            if statement.startswith("RENAME"):
                copy_rows(cursor, f"`{asked.table}`", copy, columns)
            cursor.execute(statement)


def columns_of(cursor: Cursor, table: str) -> list[str]:
    """Return the columns of a table, which is named as in SQL."""
    cursor.execute(f"SHOW COLUMNS FROM {table}")
    return [str(row[0]) for row in cursor.fetchall()]


def copy_rows(cursor: Cursor, table: str, copy: str, columns: Sequence[str]) -> None:
    """Copy the rows of `table` in chunks of the first column, which is the key and a number."""
    key, named = columns[0], ", ".join(f"`{column}`" for column in columns)
    cursor.execute(f"SELECT MAX({key}) FROM {table}")
    [(end,)] = cursor.fetchall()
    last = -(1 << 63)
    while last < end:
        chunk = f"SELECT {key} FROM {table} WHERE {key} > {last} ORDER BY 1 LIMIT {_CHUNK}"
        cursor.execute(f"SELECT COALESCE(MAX({key}), {end}) FROM ({chunk}) AS chunk")
        [(upper,)] = cursor.fetchall()
        until_done(
            cursor,
            f"INSERT LOW_PRIORITY IGNORE INTO {copy} ({named}) SELECT {named} FROM {table} FORCE INDEX(PRIMARY)"
            f" WHERE {key} > {last} AND {key} <= {upper} LOCK IN SHARE MODE",
        )
        last = upper


def until_done(cursor: Cursor, statement: str) -> None:
    """Run the statement, and again after each deadlock with a writer, as the tool does."""
    while True:
        try:
            cursor.execute(statement)
            return
        except pymysql.OperationalError as error:
            if error.args[0] != _DEADLOCK:
                raise


if __name__ == "__main__":
    main()
