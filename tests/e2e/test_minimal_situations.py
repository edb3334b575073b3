"""A whole job under binlog_row_metadata=MINIMAL, through ordinary DDL: while it runs, is stopped, and is killed."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.mysql_client import connect
from lab.replay import read_topics
from lab.running_job import end_of

pytestmark = pytest.mark.servers

#: A table's rows by key: what each change left of the row, in order. None is a deletion.
Ledger = dict[str, dict[int, list[dict[str, Any] | None]]]


class Shop:
    """Tables that are changed under MINIMAL, and a ledger of all that a consumer must see."""

    def __init__(self, play: CapturedDatabase) -> None:
        self._connection = play.connect()
        self._latin1 = connect(play.mysql, database=play.database, charset="latin1")
        self.ledger: Ledger = defaultdict(lambda: defaultdict(list))
        self._number = 0
        #: The columns of `t`, which the statements add, drop and move.
        self._columns = ["id", "a", "b", "e"]
        self.run(
            f"USE {play.database}",
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20), e ENUM('x', 'y'))",
            "CREATE TABLE other (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (100000))",
            "CREATE TABLE audit (id INT PRIMARY KEY, what VARCHAR(20))",
            "CREATE TABLE parent (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE kid (id INT PRIMARY KEY, p INT,"
            " FOREIGN KEY (p) REFERENCES parent (id) ON UPDATE CASCADE ON DELETE CASCADE)",
            "CREATE TRIGGER may_write BEFORE UPDATE ON parent FOR EACH ROW"
            " BEGIN IF NEW.v > 1000 THEN INSERT INTO audit VALUES (NEW.id, 'large'); END IF; END",
        )

    def close(self) -> None:
        self._latin1.close()
        self._connection.close()

    def run(self, *statements: str) -> None:
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def all_situations(self) -> None:
        """Run each kind of statement that once ended a job, with rows between them."""
        self._maps_without_rows()
        for text in ("größe", "Maß"):
            with self._latin1.cursor() as cursor:
                cursor.execute(f"ALTER TABLE other COMMENT '{text}'")
            self.row()
        index = self._number
        for neutral in (
            "CREATE TABLE IF NOT EXISTS t (wrong INT)",
            f"ALTER TABLE other ADD PARTITION (PARTITION q{index} VALUES LESS THAN ({100_000 + index}))",
            f"ALTER TABLE other DROP PARTITION q{index}",
            "CREATE INDEX i ON t (e)",
            "DROP INDEX i ON t",
            "ALTER TABLE t COMMENT 'größe', AUTO_INCREMENT = 9, ENGINE = InnoDB",
        ):
            self.run(neutral)
            self.row()
        self.run("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a")
        first, second = self._columns.index("a"), self._columns.index("b")
        self._columns[first], self._columns[second] = "b", "a"
        self.row()
        self.run(f"ALTER TABLE t ADD COLUMN c{index} INT FIRST")
        self._columns.insert(0, f"c{index}")
        self.row()
        self.run("CREATE TABLE swapped LIKE t", "RENAME TABLE t TO gone, swapped TO t", "DROP TABLE gone")
        self.row()

    def row(self) -> None:
        """Insert a row into `t`. Each column has another value."""
        key = self._next()
        row = {
            name: "xy"[key % 2] if name == "e" else key if name[0] in "ic" else f"{name}{key}" for name in self._columns
        }
        marks = ", ".join(["%s"] * len(row))
        with self._connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO t VALUES ({marks})", [*row.values()])
        self.ledger["t"][key].append(row)

    def _maps_without_rows(self) -> None:
        key = self._next()
        parents = self.ledger["parent"][key]
        self.run(f"INSERT INTO parent VALUES ({key}, 1)", f"UPDATE parent SET v = 2 WHERE id = {key}")
        parents += [{"id": key, "v": 1}, {"id": key, "v": 2}]
        self.run(f"INSERT INTO kid VALUES ({key}, {key})")
        self.ledger["kid"][key].append({"id": key, "p": key})
        self.run(f"UPDATE parent JOIN kid ON kid.p = parent.id SET parent.v = 3, kid.p = kid.p WHERE parent.id = {key}")
        parents.append({"id": key, "v": 3})
        self.run(f"DELETE FROM kid WHERE id = {key}", f"DELETE FROM parent WHERE id = {key}")
        self.ledger["kid"][key].append(None)
        parents.append(None)

    def _next(self) -> int:
        self._number += 1
        return self._number


@pytest.fixture
def minimal(
    minimal_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path
) -> Iterator[CapturedDatabase]:
    with captured_database(minimal_mysql, kafka_address, "shop", topic_prefix, tmp_path) as made:
        yield made
        sys.stdout.write(f"The job's log ends:\n{end_of(made.log, 60)}\n")


def test_a_consumer_sees_each_change_once_and_by_its_names_through_stops_and_kills(minimal: CapturedDatabase) -> None:
    settings = {"table.include.list": r"shop\..*"}
    with closing(Shop(minimal)) as shop:
        with minimal.job(settings) as job:
            job.wait_until_streaming()
            shop.all_situations()
            job.wait_until("the first changes were sent", lambda: bool(replayed(minimal, ("t",))))
            job.stop()
        shop.all_situations()
        with minimal.job(settings) as job:
            job.wait_until_streaming()
            job.kill()
        shop.row()
        with minimal.job(settings) as job:
            minimal.drain(job)
            job.stop()

        sent = replayed(minimal, ("t", "parent", "kid", "audit"))
        assert sent == {table: dict(rows) for table, rows in shop.ledger.items()}


def replayed(play: CapturedDatabase, tables: tuple[str, ...]) -> Ledger:
    """Return what a consumer of the tables' topics has seen, without tombstones."""
    seen: Ledger = {}
    for table in tables:

        def observe(message: Any, table: str = table) -> None:
            if message.value() is not None:
                key, after = json.loads(message.key())["id"], json.loads(message.value())["after"]
                seen.setdefault(table, {}).setdefault(key, []).append(after)

        read_topics(play.kafka, [f"{play.prefix}.{play.database}.{table}"], observe)
    return seen
