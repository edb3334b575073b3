"""Helpers for tests with a DataFrame of changes: its options, and the rows of each batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pymysql.connections import Connection
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from tests.support.waiting import wait_until

#: The statement that makes the signal table of `options`.
SIGNALS = "CREATE TABLE signals (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data TEXT NULL)"


def options(mysql: MySqlAddress, database: str, folder: Path, **more: str) -> dict[str, str]:
    """Return the options of a DataFrame. `more` are further ones, with `__` for each dot of a name."""
    return {
        **mysql.properties(),
        "database.include.list": database,
        "topic.prefix": database,
        "snapshot.mode": "no_data",
        "signal.data.collection": f"{database}.signals",
        "checkpoint.location": str(folder / "incsnap"),
        **{name.replace("__", "."): value for name, value in more.items()},
    }


class ReceivedRows:
    """The rows that a query's batches had. A repeated batch is kept once, and must have equal rows."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Row]] = {}
        #: Number of rows by operation.
        self.counts: Counter[str] = Counter()

    def __call__(self, batch: DataFrame, number: int) -> None:
        rows = batch.collect()
        if number in self.batches:
            assert sorted(map(_place, self.batches[number])) == sorted(map(_place, rows))
            return
        self.batches[number] = rows
        self.counts.update(row["_op"] for row in rows)

    @property
    def rows(self) -> list[Row]:
        """Return all rows in the order of the binlog."""
        return sorted((row for number in sorted(self.batches) for row in self.batches[number]), key=_place)

    def ops(self) -> list[str]:
        """Return the operation of each row."""
        return [row["_op"] for row in self.rows]

    def state(self, *key: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Return the table that the changes produce, by its key."""
        living: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in self.rows:
            values = {name: value for name, value in row.asDict().items() if not name.startswith("_")}
            place = tuple(values[name] for name in key)
            if row["_op"] == "d":
                living.pop(place, None)
            else:
                living[place] = values
        return living


def _place(row: Row) -> str:
    return str(row["_position"])


@contextmanager
def running(changes: DataFrame, received: ReceivedRows, folder: Path) -> Iterator[StreamingQuery]:
    """Run the query until the block ends."""
    query = changes.writeStream.foreachBatch(received).option("checkpointLocation", str(folder / "spark")).start()
    try:
        yield query
    finally:
        query.stop()


def wait(query: StreamingQuery, received: ReceivedRows, reached: Any) -> None:
    """Wait until `reached(received)` is true. Raise AssertionError if the query ends first."""

    def is_reached() -> bool:
        assert query.isActive or reached(received), str(query.exception())
        return bool(reached(received))

    wait_until(is_reached, every=0.2)


def why_ended(query: StreamingQuery) -> str:
    """Wait for the query's end and return its error."""
    wait_until(lambda: not query.isActive)
    return str(query.exception())


def backwards(received: ReceivedRows) -> list[Any]:
    """Return the rows whose key already had a newer version."""
    newest: dict[int, int] = {}
    late = []
    for row in received.rows:
        if row["version"] < newest.get(row["id"], -1):
            late.append(row)
        newest[row["id"]] = row["version"]
    return late


def table_rows(connection: Connection[Any], table: TableId) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the table's rows, read by PyMySQL, by their first column."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table.sql}")
        columns = [each[0] for each in cursor.description]
        return {(row[0],): dict(zip(columns, row, strict=True)) for row in cursor.fetchall()}
