"""The writing beside the seams: two writers, updates of a whole table, altered tables, and signals."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import Random

from pymysql.cursors import Cursor

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.owned_keys import Share
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer

#: Rows of the table that a single statement updates.
BIG_ROWS = 10_000
#: More versions than one writer makes.
_VERSIONS = 1_000_000
_COLUMNS = "id BIGINT PRIMARY KEY, version BIGINT NOT NULL, pad VARCHAR(40) NOT NULL"


class Writing:
    """The writing of a round. It makes the tables first."""

    def __init__(self, play: CapturedDatabase, random: Random) -> None:
        self._play, self._random = play, random
        self._big, self._altered = (TableId(play.database, name) for name in ("big", "altered"))
        self._versions, self._columns, self._signals = 1, 0, 0
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

    def update_big(self, times: int) -> threading.Thread:
        """Start a thread that updates all rows of a table several times, each time in one transaction."""

        def update() -> None:
            with self._cursor() as cursor:
                for _ in range(times):
                    cursor.execute(f"UPDATE {self._big.sql} SET version = version + 1")

        thread = threading.Thread(target=update)
        thread.start()
        return thread

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
