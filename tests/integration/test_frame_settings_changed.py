"""Settings of a DataFrame of changes that are changed between two runs of its query. Without Spark: its reader is asked
as Spark asks it."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from incsnap.checkpoint.first_offset import CheckpointNotShared
from incsnap.errors import ConfigError
from incsnap.spark.changes_reader import ChangesReader
from incsnap.spark.frames import ChangesFrame
from lab.addresses import MySqlAddress
from tests.support.frames import SIGNALS, options
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers
Offset = dict[str, Any]


@pytest.fixture
def reader(mysql_address: MySqlAddress, database: str, tmp_path: Path) -> Iterator[Callable[..., ChangesReader]]:
    opened: list[ChangesReader] = []
    terminated = signal.getsignal(signal.SIGTERM)

    def read(**more: str) -> ChangesReader:
        """The one before it is stopped."""
        for each in opened:
            each.stop()
        frame = ChangesFrame(options(mysql_address, database, tmp_path, **more))
        opened.append(frame.streamReader(frame.schema()))
        return opened[-1]

    yield read
    for each in opened:
        each.stop()
    assert signal.getsignal(signal.SIGTERM) is terminated, "what this process runs later must not inherit it"


def test_the_rest_of_a_transaction_needs_the_same_captured_tables(
    reader: Callable[..., ChangesReader], cursor: Cursor, mysql_address: MySqlAddress, database: str
) -> None:
    cursor.execute(SIGNALS)
    for table in "ab":
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    both = {"max__batch__size": "1", "include__schema__changes": "false"}
    begun = reader(**both)
    start = begun.initialOffset()
    cursor.execute("BEGIN")
    for number in (1, 2, 3):
        for table in "ab":
            cursor.execute(f"INSERT INTO {table} VALUES ({number})")
    cursor.execute("COMMIT")
    changes: list[str] = []
    start = batch(begun, start, changes)
    start = batch(begun, start, changes)

    other = reader(**both, table__include__list=f"{database}.b")
    with pytest.raises(ConfigError, match=r"its rest must be sent with the same settings; .*include and exclude lists"):
        batch(other, start, changes)
    again = reader(**both)
    while len(changes) < 6:
        start = batch(again, start, changes)
    assert changes == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_a_task_on_a_machine_that_does_not_see_the_checkpoint_says_so(
    reader: Callable[..., ChangesReader], cursor: Cursor, tmp_path: Path
) -> None:
    cursor.execute(SIGNALS)
    cursor.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    begun = reader(include__schema__changes="false")
    start = begun.initialOffset()
    cursor.execute("INSERT INTO a VALUES (1)")
    parts = begun.partitions(start, next_end(begun, start))
    seen, unseen = tmp_path / "incsnap", tmp_path / "elsewhere"
    seen.rename(unseen)

    with pytest.raises(CheckpointNotShared, match=f"does not see the job's checkpoint at {seen}"):
        [list(begun.read(part)) for part in parts]
    unseen.rename(seen)
    assert [rows.num_rows for part in parts for rows in begun.read(part)] == [1]


def next_end(reader: ChangesReader, start: Offset) -> Offset:
    ends: list[Offset] = []

    def is_there() -> bool:
        ends.append(reader.latestOffset(start, None))
        return ends[-1] != start

    wait_until(is_there)
    return ends[-1]


def batch(reader: ChangesReader, start: Offset, changes: list[str]) -> Offset:
    """Run the next batch as Spark does, and return its end. Append table and id of each change to `changes`."""
    end = next_end(reader, start)
    for part in reader.partitions(start, end):
        for rows in reader.read(part):
            changes.extend(
                row["table"].rpartition(".")[2] + str(json.loads(row["key"])["id"]) for row in rows.to_pylist()
            )
    reader.commit(end)
    return end
