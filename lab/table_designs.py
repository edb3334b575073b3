"""The tables of the demo and the tests: their DDL, a fast way to fill them, and a writer's keys and rows for them."""

from __future__ import annotations

import datetime
import json
import string
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.tables import TableId

Key = tuple[Any, ...]
Row = dict[str, Any]


def _exactly(key: Key) -> Key:
    return key


@dataclass(frozen=True, slots=True)
class TableDesign:
    """A kind of table, with all that is needed to fill and to change it."""

    name: str  #: name of the table, without its database
    columns: str  #: the body of CREATE TABLE; it has `version BIGINT NOT NULL`
    key: tuple[str, ...]  #: names of the primary key's columns
    load: str  #: the select list that gives row `i` (from 1) of the filled table
    #: returns a new key for a number: different for each number, and different from the keys of all loaded rows
    new_key: Callable[[Random, int], Key]
    row: Callable[[Random], Row]  #: returns random values of the other columns, without `version`
    fold: Callable[[Key], Key] = _exactly  #: returns equal values for keys that MySQL considers equal

    def create(self, connection: Connection[Cursor], database: str, rows: int) -> TableId:
        """Create the table in `database` with `rows` rows of version 0, at 100,000 to 200,000 rows/s."""
        table = TableId(database, self.name)
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {table.sql} ({self.columns}) CHARACTER SET utf8mb4")
            cursor.execute(f"SET SESSION cte_max_recursion_depth = {rows + 1}, time_zone = '+00:00'")
            # Several transactions: one of 300,000 rows blocks every other commit while it is flushed.
            for first in range(1, rows + 1, 50_000):
                last = min(rows, first + 49_999)
                numbers = f"SELECT {first} AS i UNION ALL SELECT i + 1 FROM numbers WHERE i < {last}"
                cursor.execute(
                    f"INSERT INTO {table.sql} WITH RECURSIVE numbers AS ({numbers}) SELECT {self.load} FROM numbers"
                )
        connection.commit()
        return table


_WORDS = ("anchor", "birch", "copper", "delta", "ember", "fjord", "granite", "harbour", "ivory", "jasper")
_EPOCH = datetime.datetime(2025, 1, 1)


def _note(random: Random, length: int) -> str:
    return " ".join(random.choice(_WORDS) for _ in range(length // 5))[:length]


def _moment(random: Random) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(milliseconds=random.randrange(365 * 86_400_000))


def _order(random: Random) -> Row:
    return {
        "customer_id": random.randrange(1, 50_000),
        "status": random.choice(("new", "paid", "shipped", "done")),
        "amount": Decimal(random.randrange(-99_999, 10_000_000)).scaleb(-2),
        "qty": None if random.random() < 0.1 else random.randrange(100),
        "note": _note(random, 96),
        "sku": "".join(random.choices(string.ascii_uppercase + string.digits, k=16)),
        "created_at": _moment(random),
        "updated_at": None if random.random() < 0.2 else _moment(random),
        "ratio": random.random() * 10 ** random.randrange(-3, 6),
    }


def _order_key(random: Random, number: int) -> Key:
    """Return an odd number, because loaded keys are even.

    Odd values of `number` give keys one after the other from the table's beginning. Even ones give keys scattered over
    300,000.
    """
    if number % 2:
        return (2 * number + 1,)
    half = number // 2
    return (4 * (half * 7919 % 75_011 + half // 75_011 * 75_011) + 1,)


#: The ten columns of the benchmarks, and the version.
ORDERS = TableDesign(
    name="orders",
    columns="""
        id BIGINT PRIMARY KEY AUTO_INCREMENT, customer_id INT NOT NULL,
        status ENUM('new', 'paid', 'shipped', 'done') NOT NULL, amount DECIMAL(12,2) NOT NULL, qty INT NULL,
        note VARCHAR(255) NOT NULL, sku CHAR(16) NOT NULL, created_at DATETIME(3) NOT NULL,
        updated_at TIMESTAMP(3) NULL, ratio DOUBLE NOT NULL, version BIGINT NOT NULL""",
    key=("id",),
    load="""
        i * 2, i * 7919 % 50000, 1 + i % 4, (i * 104729 % 10000000) / 100, IF(i % 10 = 0, NULL, i % 100),
        RPAD(CONCAT('order ', i, ' '), 96, 'granite harbour copper delta '), LPAD(CONV(i * 48271, 10, 36), 16, 'X'),
        '2025-01-01' + INTERVAL (i * 100001 % 31536000000) * 1000 MICROSECOND,
        IF(i % 5 = 0, NULL, '2025-01-01' + INTERVAL (i * 70001 % 31536000000) * 1000 MICROSECOND), i / 7, 0""",
    new_key=_order_key,
    row=_order,
)


def _line(random: Random) -> Row:
    return {
        "product": _note(random, 24),
        "price": Decimal(random.randrange(1_000_000)).scaleb(-2),
        "day": _moment(random).date(),
        "extra": json.dumps(
            {"gift": random.random() < 0.5, "tags": random.sample(_WORDS, 2), "weight": random.randrange(500)}
        ),
    }


def _tenant(random: Random) -> int:
    return 7 if random.random() < 0.7 else random.randrange(50)


#: A composite key with strong skew: seven of ten rows belong to tenant 7.
ORDER_LINES = TableDesign(
    name="order_lines",
    columns="""
        tenant INT NOT NULL, seq INT NOT NULL, product VARCHAR(40) NOT NULL, price DECIMAL(10,2) NOT NULL,
        day DATE NOT NULL, extra JSON NULL, version BIGINT NOT NULL, PRIMARY KEY (tenant, seq)""",
    key=("tenant", "seq"),
    load="""
        IF(i % 10 < 7, 7, i % 50), i * 2, CONCAT('product ', i % 1000), (i * 7919 % 1000000) / 100,
        '2025-01-01' + INTERVAL i % 365 DAY, IF(i % 3 = 0, NULL, JSON_OBJECT('n', i, 'even', i % 2 = 0)), 0""",
    new_key=lambda random, number: (_tenant(random), number * 2 + 1),
    row=_line,
)


def _fold(key: Key) -> Key:
    return tuple(part.casefold() if isinstance(part, str) else part for part in key)


#: A string key in a collation that considers 'a' and 'A' equal.
PEOPLE = TableDesign(
    name="people",
    columns="""
        code VARCHAR(40) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, name VARCHAR(80) NULL, joined DATETIME(6) NOT NULL,
        avatar VARBINARY(64) NULL, version BIGINT NOT NULL""",
    key=("code",),
    load="""
        CONCAT(IF(i % 2, 'User-', 'uSER-'), CONV(i * 7919, 10, 36)),
        IF(i % 7 = 0, NULL, CONCAT('Jérôme "', i, '" \\\\ ☃')),
        '2025-01-01' + INTERVAL i * 1234567 MICROSECOND, UNHEX(SHA2(i, 256)), 0""",
    new_key=lambda random, number: (f"{random.choice(('New', 'nEW'))}-{number}-{random.choice(_WORDS)}",),
    row=lambda random: {
        "name": None if random.random() < 0.1 else f'{random.choice(_WORDS)} "{random.randrange(1000)}"\n\t✓',
        "joined": _EPOCH + datetime.timedelta(microseconds=random.randrange(10**13)),
        "avatar": random.randbytes(random.randrange(64)),
    },
    fold=_fold,
)
