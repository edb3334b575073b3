"""The changes that the benchmark writes. Stored procedures write them, so that no client takes processor time.

Every change leaves the same keys in the table, so it can be repeated in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from benchmarks.tables import ORDERS

#: Writes changes on a connection.
Write = Callable[["Connection[Cursor]"], None]
#: A transaction of a mix changes so many tables. Each gets so many changes, which become so many records.
_MIX_TABLES, _MIX_CHANGES, _MIX_RECORDS = 4, 5, 6
_BLOCK = 1_000


def updates(table: str, rows: int, transaction_rows: int) -> Write:
    """Return a write that updates each of the first `rows` rows once, in transactions of `transaction_rows` rows.

    Each row is one change and one record.
    """
    body = f"""
        WHILE i < {rows} DO
          UPDATE {table} SET qty = COALESCE(qty, 0) + 1
          WHERE id > i AND id <= LEAST(i + {transaction_rows}, {rows});
          SET i = i + {transaction_rows};
        END WHILE;
    """
    return lambda connection: _call(connection, table, body)


def deletes_and_inserts(table: str, rows: int) -> Write:
    """Return a write that deletes the first `rows` rows and inserts them again, in transactions of 1,000 rows.

    Each row is 2 changes and 3 records.
    """

    def write(connection: Connection[Cursor]) -> None:
        with connection.cursor() as cursor:
            for first in range(0, rows, _BLOCK):
                count = min(_BLOCK, rows - first)
                cursor.execute(f"DELETE FROM {table} WHERE id > %s AND id <= %s", (first, first + count))
                ORDERS.insert(connection, table, first, count)

    return write


def mix(tables: Sequence[str], rows: int, transactions: int) -> Write:
    """Return a write of mixed transactions: three updates, a deletion and an insertion in each of 4 tables.

    `rows` is the size of each table, more than 4. The number of tables must be a multiple of 4.
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
    """Return the number of changes that `mix` writes in so many transactions."""
    return transactions * _MIX_TABLES * _MIX_CHANGES


def mix_records(transactions: int) -> int:
    """Return the number of records of these changes. A deletion is two records, because of its tombstone."""
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
