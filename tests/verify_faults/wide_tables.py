"""Tables with keys of four kinds and many columns of random types, and the statements that fill and change them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.random_values import CASES

#: Columns of each table; the others are drawn.
_ALWAYS = ("bigint_unsigned", "decimal_20_10", "float", "double", "json", "varchar", "varbinary")
#: Columns with large values. They would make most of the bytes.
_LARGE = ("mediumblob", "longblob", "mediumtext", "longtext", "text")
_DRAWN = 14
#: Most characters of a value.
_LONGEST = 5_000
#: The version of rows that the last statement has changed. By them each partition shows how far it came.
LAST_VERSION = 777_777


@dataclass(frozen=True, slots=True)
class KeyKind:
    """A kind of primary key."""

    sql: str  #: columns of the key, with the key
    names: tuple[str, ...]  #: names of these columns
    values: Callable[[int], tuple[Any, ...]]  #: the key of row n
    moved: Callable[[int], tuple[Any, ...]]  #: another key for row n


def _code(number: int) -> str:
    return f"Käufer-{number * 7919 % 100_003:x}"


KEY_KINDS = {
    "numbered": KeyKind(
        "id BIGINT UNSIGNED PRIMARY KEY",
        ("id",),
        lambda n: ((1 << 64) - n if n % 3 == 0 else n,),
        lambda n: (n + 1_000_000,),
    ),
    "composite": KeyKind(
        "tenant INT, name VARCHAR(20), PRIMARY KEY (name, tenant)",
        ("tenant", "name"),
        lambda n: (n % 7, f'n"{n}'),
        lambda n: (n % 7 - 100, f'n"{n}'),
    ),
    "binary_key": KeyKind(
        "k VARBINARY(12) PRIMARY KEY",
        ("k",),
        lambda n: ((n * 2_654_435_761 % (1 << 64)).to_bytes(8, "big") + b"\0" * (n % 3),),
        lambda n: (b"\xff" + n.to_bytes(4, "big"),),
    ),
    # A change of case alone changes the record's key, and not the row that the index finds.
    "text_key": KeyKind(
        "code VARCHAR(40) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY",
        ("code",),
        lambda n: (_code(n),),
        lambda n: (_code(n).swapcase(),),
    ),
}


class WideTable:
    """A table whose rows have the numbers 1, 2, ... in the column `n`."""

    def __init__(self, address: MySqlAddress, database: str, kind: str, random: Random) -> None:
        self.id, self.kind, self.random = TableId(database, kind), KEY_KINDS[kind], random
        self._address = address
        drawn = random.sample([name for name in CASES if name not in (*_LARGE, *_ALWAYS)], _DRAWN)
        self.columns = [*_ALWAYS, *drawn]
        self._count = 0
        columns = ", ".join(f"c_{name} {CASES[name].sql}" for name in self.columns)
        with self.session() as cursor:
            key = self.kind.sql
            cursor.execute(f"CREATE TABLE {self.id.sql} (n INT NOT NULL, version INT NOT NULL, {columns}, {key})")

    def session(self) -> Session:
        """Return a session that writes, as a context manager that yields a cursor."""
        return Session(self._address)

    def insert(self, cursor: Cursor, rows: int) -> None:
        """Insert so many new rows by one statement."""
        names = ["n", "version", *self.kind.names, *(f"c_{name}" for name in self.columns)]
        values = []
        for _ in range(rows):
            self._count += 1
            values.append((self._count, 0, *self.kind.values(self._count), *map(self._value, self.columns)))
        row = f"({', '.join(['%s'] * len(names))})"
        cursor.executemany(f"INSERT INTO {self.id.sql} ({', '.join(names)}) VALUES {row}", values)

    def update(self, cursor: Cursor, numbers: Sequence[int]) -> None:
        """Change one to three columns of each of these rows."""
        for number in numbers:
            chosen = self.random.sample(self.columns, self.random.randint(1, 3))
            new = ", ".join(f"c_{name} = %s" for name in chosen)
            sql = f"UPDATE {self.id.sql} SET {new}, version = version + 1 WHERE n = %s"
            cursor.execute(sql, [*map(self._value, chosen), number])

    def delete(self, cursor: Cursor, numbers: Sequence[int]) -> None:
        """Delete these rows by one statement."""
        cursor.execute(f"DELETE FROM {self.id.sql} WHERE n IN %s", [tuple(numbers)])

    def move(self, cursor: Cursor, numbers: Sequence[int]) -> None:
        """Change the keys of these rows."""
        new = ", ".join(f"{name} = %s" for name in self.kind.names)
        for number in numbers:
            cursor.execute(f"UPDATE {self.id.sql} SET {new} WHERE n = %s", [*self.kind.moved(number), number])

    def change_last(self, cursor: Cursor, rows: int) -> None:
        """Give the newest rows LAST_VERSION by one statement."""
        cursor.execute(f"UPDATE {self.id.sql} SET version = {LAST_VERSION} WHERE n > {self._count - rows}")

    @property
    def count(self) -> int:
        """Return how many rows were inserted."""
        return self._count

    def _value(self, name: str) -> Any:
        value = None if self.random.random() < 0.15 else CASES[name].value(self.random)
        # A record has at most 1 MB, and a document may have more.
        return value if not isinstance(value, str) or len(value) < _LONGEST else None


class Session:
    """A session in UTC without strict mode, because random values may be too large."""

    def __init__(self, address: MySqlAddress) -> None:
        self._opened = closing(connect(address, init_command="SET SESSION time_zone = '+00:00', sql_mode = ''"))

    def __enter__(self) -> Cursor:
        connection: Connection[Cursor] = self._opened.__enter__()
        return connection.cursor()

    def __exit__(self, *exception: object) -> None:
        self._opened.__exit__(*exception)


def changed(tables: Sequence[WideTable], rows: int) -> Iterator[None]:
    """Fill `tables` with `rows` rows, then change them behind the first `next`, which a job's start may precede.

    Rows are inserted, updated up to three times, deleted, moved to other keys and inserted again.
    """
    for table in tables:
        with table.session() as cursor:
            table.insert(cursor, rows)
    yield
    last = rows // 4
    for table in tables:
        with table.session() as cursor:
            table.insert(cursor, rows // 3)
            numbers = list(range(1, table.count + 1))
            table.random.shuffle(numbers)
            third = len(numbers) // 3
            table.update(cursor, numbers[: 2 * third])
            table.update(cursor, numbers[:third])
            table.update(cursor, numbers[: third // 2])
            gone = numbers[-third // 2 :]
            table.delete(cursor, gone)
            table.move(cursor, numbers[third : third + third // 4])
            table.insert(cursor, last)
            table.change_last(cursor, last)
    yield
