"""What is written to the tables: by stored procedures, so that the writing takes no client's time.

Every change leaves the table with the keys it had, so that it can be made again in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from benchmarks.tables import ORDERS

Write = Callable[["Connection[Cursor]"], None]
#: Of the tables of a mix so many are in one transaction, with these changes and these records of each.
_MIX_TABLES, _MIX_CHANGES, _MIX_RECORDS = 4, 5, 6
_BLOCK = 1_000


def updates(table: str, rows: int, transaction_rows: int) -> Write:
    """Each of the first ``rows`` rows once, ``transaction_rows`` of them a transaction: a change and a record a row."""
    body = f"""
        WHILE i < {rows} DO
          UPDATE {table} SET qty = COALESCE(qty, 0) + 1
          WHERE id > i AND id <= LEAST(i + {transaction_rows}, {rows});
          SET i = i + {transaction_rows};
        END WHILE;
    """
    return lambda connection: _call(connection, table, body)


def deletes_and_inserts(table: str, rows: int) -> Write:
    """The first ``rows`` rows go and come again, 1,000 rows a transaction: 2 changes and 3 records a row."""

    def write(connection: Connection[Cursor]) -> None:
        with connection.cursor() as cursor:
            for first in range(0, rows, _BLOCK):
                count = min(_BLOCK, rows - first)
                cursor.execute(f"DELETE FROM {table} WHERE id > %s AND id <= %s", (first, first + count))
                ORDERS.insert(connection, table, first, count)

    return write


def mix(tables: Sequence[str], rows: int, transactions: int) -> Write:
    """Three updates, a deletion and an insertion in each of 4 tables a transaction; see ``mix_changes``.

    ``rows``: of each table, more than 4. The number of tables is a multiple of 4.
    """
    groups = [tables[first : first + _MIX_TABLES] for first in range(0, len(tables), _MIX_TABLES)]
    cases = "".join(
        f"WHEN {number} THEN {''.join(_mix_of(table) for table in group)}" for number, group in enumerate(groups)
    )
    body = f"""
        WHILE i < {transactions} DO
          SET k = 1 + (i DIV {len(groups)}) MOD {rows - 4};
          START TRANSACTION;
          CASE i MOD {len(groups)} {cases} END CASE;
          COMMIT;
          SET i = i + 1;
        END WHILE;
    """
    return lambda connection: _call(connection, tables[0], body)


def mix_changes(transactions: int) -> int:
    return transactions * _MIX_TABLES * _MIX_CHANGES


def mix_records(transactions: int) -> int:
    """A deletion is two records, for its tombstone."""
    return transactions * _MIX_TABLES * _MIX_RECORDS


def _mix_of(table: str) -> str:
    return f"""
        UPDATE {table} SET qty = COALESCE(qty, 0) + 1 WHERE id > k AND id <= k + 3;
        DELETE FROM {table} WHERE id = k;
        INSERT INTO {table} SELECT {ORDERS.key_values}, {ORDERS.values} FROM (SELECT k - 1 AS n) numbers;
    """


def _call(connection: Connection[Cursor], table: str, body: str) -> None:
    procedure = f"{table.partition('.')[0]}.write_changes"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP PROCEDURE IF EXISTS {procedure}")
        cursor.execute(f"CREATE PROCEDURE {procedure}() BEGIN DECLARE i BIGINT DEFAULT 0; DECLARE k BIGINT; {body} END")
        cursor.execute(f"CALL {procedure}()")
