"""The writing beside the seams: two writers, changes of a whole table, altered tables, and signals."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from random import Random

from pymysql.cursors import Cursor

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.owned_keys import Share
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer

#: Rows of the table that a single transaction changes.
BIG_ROWS = 10_000
#: More versions than one writer makes.
_VERSIONS = 1_000_000
_COLUMNS = "id BIGINT PRIMARY KEY, version BIGINT NOT NULL, pad VARCHAR(40) NOT NULL"


class Writing:
    """The writing of a round. It makes the tables first."""

    def __init__(self, play: CapturedDatabase, random: Random) -> None:
        self._play, self._random = play, random
        self._big, self._altered = (TableId(play.database, name) for name in ("big", "altered"))
        self._versions, self._columns, self._signals, self._big_version = 1, 0, 0, 0
        play.create(ORDERS, 1_500)
        play.create(ORDER_LINES, 500)
        with self._cursor() as cursor:
            cursor.execute(f"SET SESSION cte_max_recursion_depth = {BIG_ROWS + 1}")
            for table, rows in ((self._big, BIG_ROWS), (self._altered, 50)):
                cursor.execute(f"CREATE TABLE {table.sql} ({_COLUMNS})")
                numbers = f"SELECT 1 AS i UNION ALL SELECT i + 1 FROM numbers WHERE i < {rows}"
                cursor.execute(
                    f"INSERT INTO {table.sql} WITH RECURSIVE numbers AS ({numbers})"
                    " SELECT i, 0, CONCAT('row ', i) FROM numbers"
                )

    @property
    def tables(self) -> list[TableId]:
        """The tables that are compared at the end."""
        return [*(table for _, table in self._play.tables), self._big, self._altered]

    def writer(self, index: int, *, xa: bool) -> Writer:
        """Return writer `index` of two.

        With `xa` all its transactions are XA ones, of which none is rolled back: Debezium would have sent its rows.
        """
        self._versions += _VERSIONS
        return Writer(
            self._play.connect,
            self._play.tables,
            seed=self._random.randrange(1 << 30),
            rate=150.0,
            share=Share(index, 2),
            first_version=self._versions,
            largest_transaction=200,
            xa_share=1.0 if xa else 0.0,
            rollback_share=0.0 if xa else 0.07,
        )

    def change_big(self, times: int) -> Future[None]:
        """Change all rows of a table several times in a thread, each time in one transaction.

        The transaction updates all rows. Then it deletes and inserts a fourth of the rows, and changes the key of
        another fourth. So a seam may lie at a deletion, and within the records of a changed key.
        """
        going = TableId(self._play.database, "going").sql

        def change() -> None:
            with self._cursor() as cursor:
                for _ in range(times):
                    self._big_version += 2
                    updated, made = self._big_version - 1, self._big_version
                    cursor.execute("BEGIN")
                    cursor.execute(f"UPDATE {self._big.sql} SET version = {updated}")
                    cursor.execute(f"CREATE TEMPORARY TABLE {going} SELECT * FROM {self._big.sql} WHERE id % 4 = 0")
                    cursor.execute(f"DELETE FROM {self._big.sql} WHERE id % 4 = 0")
                    cursor.execute(f"INSERT INTO {self._big.sql} SELECT id, {made}, pad FROM {going}")
                    cursor.execute(f"DROP TEMPORARY TABLE {going}")
                    cursor.execute(f"UPDATE {self._big.sql} SET id = -id, version = {made} WHERE ABS(id) % 4 = 1")
                    cursor.execute("COMMIT")

        pool = ThreadPoolExecutor(1)
        changes = pool.submit(change)
        pool.shutdown(wait=False)
        return changes

    def alter(self) -> None:
        """Add a column, and update all rows, so that the last records have it."""
        self._columns += 1
        name, where = f"c{self._columns}", self._random.choice(("FIRST", "AFTER id", ""))
        with self._cursor() as cursor:
            cursor.execute(f"ALTER TABLE {self._altered.sql} ADD COLUMN {name} INT NOT NULL DEFAULT 7 {where}")
            cursor.execute(f"UPDATE {self._altered.sql} SET version = version + 1, {name} = id")

    def signal(self) -> None:
        """Ask for an incremental snapshot of a table."""
        self._signals += 1
        self._play.execute_by_row(f"s{self._signals}", [self._random.choice(self._play.tables)[1]])

    def prepared(self) -> int:
        """Return how many XA transactions are prepared."""
        with self._cursor() as cursor:
            cursor.execute("XA RECOVER")
            return len(cursor.fetchall())

    @contextmanager
    def _cursor(self) -> Iterator[Cursor]:
        with closing(self._play.connect()) as connection, connection.cursor() as cursor:
            yield cursor
