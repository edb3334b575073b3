"""Writers that keep two tables changing: batches of rows, changes of keys, XA transactions and ALTERs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.tables import TableId

#: Numbers of rows with this remainder belong to the XA transactions, so that the others do not wait for their locks.
_OF_XA, _SHARES = 0, 5
#: Rows of the window in which most changes are, changes until it moves by a row, and the share of changes elsewhere.
_WINDOW, _MOVES_EVERY, _ANYWHERE = 1_000, 10, 0.05
#: Rows of one statement.
_BATCH = 40
#: What is added to the number of a row that moves.
_MOVED = 1_000_000
#: MySQL's errors that end a statement and not the writer: lock wait timeout, deadlock, XA rollback after a deadlock.
_PASSING = (1205, 1213, 1613, 1614)

#: Name, statement and counter-statement of ALTERs, and whether rows that were sent between the two have other columns.
ALTERS = (
    ("index", "ADD INDEX by_v (v)", "DROP INDEX by_v", False),
    ("comment", "COMMENT = 'a'", "COMMENT = 'b'", False),
    ("wider", "MODIFY note VARCHAR(90)", "MODIFY note VARCHAR(60)", False),
    ("column", "ADD COLUMN extra INT NOT NULL DEFAULT 7", "DROP COLUMN extra", True),
)


def create_tables(connection: Connection[Cursor], database: str, rows: int) -> tuple[TableId, TableId]:
    """Create the tables, the first by numbers, the second by texts without case, with `rows` rows each."""
    numbered, named = TableId(database, "numbered"), TableId(database, "named")
    columns = "v BIGINT NOT NULL, note VARCHAR(60), f FLOAT, d DECIMAL(12,3), j JSON, at DATETIME(3)"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {numbered.sql} (id BIGINT PRIMARY KEY, {columns})")
        cursor.execute(
            f"CREATE TABLE {named.sql} (tenant INT, code VARCHAR(30) COLLATE utf8mb4_0900_ai_ci, {columns},"
            " PRIMARY KEY (tenant, code))"
        )
        for table, random in ((numbered, Random(1)), (named, Random(2))):
            for begin in range(0, rows, 1000):
                cursor.execute(_insert(table, random, range(begin, min(rows, begin + 1000)), 0))
    return numbered, named


def _key(table: TableId, number: int) -> str:
    return str(number) if table.table == "numbered" else f"{number % 7}, 'Kä-{number}'"


def _insert(table: TableId, random: Random, numbers: Any, version: int) -> str:
    key = "id" if table.table == "numbered" else "tenant, code"
    values = ", ".join(f"({_key(table, number)}, {version}, {_values(random, version)})" for number in numbers)
    # An update of a row that is there, so a writer needs not know which rows exist.
    again = " ON DUPLICATE KEY UPDATE v = VALUES(v), note = VALUES(note), f = VALUES(f), j = VALUES(j)"
    return f"INSERT INTO {table.sql} ({key}, v, note, f, d, j, at) VALUES {values}{again}"


def _values(random: Random, version: int) -> str:
    note = random.choice(("NULL", f"'n{version}'"))
    document = f'\'{{"a": {random.random():.6f}, "b": [1, 2]}}\''
    return f"{note}, {random.random() * 1e6:.9g}, {random.randrange(10**9)} / 1000, {document}, NOW(3)"


def _where(table: TableId, numbers: Any) -> str:
    keys = ", ".join(f"({_key(table, number)})" for number in numbers)
    return f"({'id' if table.table == 'numbered' else 'tenant, code'}) IN ({keys})"


def change(random: Random, table: TableId, numbers: list[int], version: int) -> str:
    """Return a statement that changes rows with these numbers: new values, deletions, new rows, or other keys."""
    kind = random.choices(("update", "insert", "delete", "move"), (50, 28, 14, 8))[0]
    if kind == "insert":
        return _insert(table, random, numbers, version)
    if kind == "delete":
        return f"DELETE FROM {table.sql} WHERE {_where(table, numbers)}"
    if kind == "update":
        return f"UPDATE {table.sql} SET v = {version}, f = f * 1.1, at = NOW(3) WHERE {_where(table, numbers)}"
    if table.table == "numbered":
        either = numbers + [number + _MOVED for number in numbers]
        other = f"IF(id < {_MOVED}, id + {_MOVED}, id - {_MOVED})"
        return f"UPDATE IGNORE {table.sql} SET id = {other}, v = {version} WHERE {_where(table, either)}"
    # The index takes both for one key, and Kafka does not.
    other = "IF(BINARY code = BINARY UPPER(code), LOWER(code), UPPER(code))"
    return f"UPDATE {table.sql} SET code = {other}, v = {version} WHERE {_where(table, numbers)}"


class LiveWriters:
    """Writers on `tables` with `rows` rows each, which change up to `rate` rows per second together.

    `counts`: changed rows by statement, ends of XA transactions and ALTERs.
    """

    def __init__(
        self, connect: Callable[[], Connection[Cursor]], tables: tuple[TableId, ...], rows: int, rate: int, seed: int
    ) -> None:
        self._connect, self._tables, self._rows, self._rate, self._seed = connect, tables, rows, rate, seed
        self._stopping = threading.Event()
        self.counts: Counter[str] = Counter()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Write until the block ends. Raise the error of a writer that has failed."""
        with ThreadPoolExecutor(2) as pool:
            writing = [pool.submit(self._write), pool.submit(self._write_xa)]
            try:
                yield
            finally:
                self._stopping.set()
            for each in writing:
                each.result()

    @property
    def changes(self) -> int:
        """Return how many rows were changed so far."""
        return self.counts["rows"]

    def alter(self, random: Random) -> bool:
        """Alter a table and perhaps take it back. Return True if records of unchanged rows may differ from now on."""
        table, (name, there, back, differs) = random.choice(self._tables), random.choice(ALTERS)
        with contextlib.closing(self._connect()) as connection, connection.cursor() as cursor:
            for statement in (there, back):
                cursor.execute(f"ALTER TABLE {table.sql} {statement}")
                self.counts[f"ALTER {name}"] += 1
                time.sleep(random.random() * 1.5)
        return differs

    def _numbers(self, random: Random, count: int, *, xa: bool) -> list[int]:
        """Return numbers of rows. Most are of a window that moves on, as orders change for a while after they came."""
        window = self.counts["rows"] // _MOVES_EVERY
        drawn = (
            random.randrange(self._rows) if random.random() < _ANYWHERE else window + random.randrange(_WINDOW)
            for _ in range(count)
        )
        drawn = (number % self._rows for number in drawn)
        return sorted(
            {number - number % _SHARES + (_OF_XA if xa else random.randrange(1, _SHARES)) for number in drawn}
        )

    def _write(self) -> None:
        random, began, done = Random(self._seed), time.monotonic(), 0
        with contextlib.closing(self._session()) as connection, connection.cursor() as cursor:
            while not self._stopping.is_set():
                table = random.choice(self._tables)
                done += self._execute(cursor, change(random, table, self._numbers(random, _BATCH, xa=False), done))
                if random.random() < 0.3:
                    connection.commit()
                # A writer that was held up does not catch up: the rate is an upper bound.
                ahead = done / self._rate - (time.monotonic() - began)
                began = time.monotonic() - done / self._rate if ahead < -1 else began
                self._stopping.wait(max(0.0, ahead))
            connection.commit()

    def _write_xa(self) -> None:
        """Prepare a transaction, let it wait, and end it, again and again."""
        random, number = Random(-self._seed), 0
        while not self._stopping.is_set():
            number += 1
            name = f"'live-{self._seed}-{number}'"
            with contextlib.closing(self._session(autocommit=True)) as connection, connection.cursor() as cursor:
                cursor.execute(f"XA START {name}")
                for _ in range(random.randint(1, 3)):
                    table = random.choice(self._tables)
                    self._execute(cursor, change(random, table, self._numbers(random, 20, xa=True), number))
                    self._stopping.wait(random.random() * 0.3)
                try:
                    cursor.execute(f"XA END {name}")
                    cursor.execute(f"XA PREPARE {name}")
                    self._stopping.wait(random.random() * 1.5)
                    end = random.choice(("COMMIT", "COMMIT", "ROLLBACK"))
                except pymysql.MySQLError:
                    end = "ROLLBACK"
                with contextlib.suppress(pymysql.MySQLError):
                    cursor.execute(f"XA {end} {name}")
                self.counts[f"XA {end}"] += 1

    def _session(self, *, autocommit: bool = False) -> Connection[Cursor]:
        connection = self._connect()
        connection.autocommit(autocommit)
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 2, transaction_isolation = 'READ-COMMITTED'")
        return connection

    def _execute(self, cursor: Cursor, statement: str) -> int:
        try:
            changed = int(cursor.execute(statement))
        except pymysql.MySQLError as error:
            if error.args[0] not in _PASSING:
                raise
            self.counts["waited in vain"] += 1
            return 0
        self.counts["rows"] += changed
        return changed
