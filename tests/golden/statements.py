"""The statements of the two SQL files. The recorder and the tests run them on their servers in the same way."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pymysql

from lab.addresses import MySqlAddress
from lab.mysql_client import connect

_FOLDER = Path(__file__).parent

#: The database's name in the golden files. The tests use another name, and replace it in their records.
DATABASE = "golden"


def statements(name: str) -> list[str]:
    """Return the statements of `schema.sql` or `changes.sql`, without comments and final semicolons."""
    lines = [line for line in (_FOLDER / name).read_text(encoding="utf-8").splitlines() if not line.startswith("--")]
    return [text.strip() for text in "\n".join(lines).split(";\n") if text.strip()]


def execute(address: MySqlAddress, database: str, name: str) -> Iterator[str]:
    """Run the file in the database, in one session. Yield each statement before it runs.

    Raise AssertionError that names the statement if the server refuses one.
    """
    connection = connect(address, database=database, init_command="SET SESSION time_zone = '+00:00'")
    with closing(connection), connection.cursor() as cursor, warnings.catch_warnings():
        warnings.simplefilter("ignore", pymysql.Warning)
        for statement in statements(name):
            yield statement
            try:
                cursor.execute(statement.replace("{database}", database))
            except pymysql.err.MySQLError as error:
                raise AssertionError(f"{name}: {statement[:300]}\n{error}") from error


def execute_all(address: MySqlAddress, database: str, name: str) -> None:
    for _ in execute(address, database, name):
        pass
