"""A test of a DataFrame's reader under Spark 4.1, which calls `latestOffset` without the start of the batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from incsnap.spark.changes_reader import ChangesReader
from incsnap.spark.frames import ChangesFrame
from lab.addresses import MySqlAddress
from tests.support.frames import SIGNALS, options
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers
Offset = dict[str, Any]


def test_each_batch_begins_where_sparks_log_ends(
    cursor: Cursor, mysql_address: MySqlAddress, database: str, tmp_path: Path
) -> None:
    cursor.execute(SIGNALS)
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")

    def begun() -> ChangesReader:
        frame = ChangesFrame(options(mysql_address, database, tmp_path, table=f"{database}.t"))
        return frame.streamReader(frame.schema())

    def after(number: int, reader: ChangesReader, before: Offset) -> Offset:
        cursor.execute(f"INSERT INTO t VALUES ({number})")
        return next_end(reader, before)

    killed = begun()
    try:
        first = killed.latestOffset()
        assert first == killed.initialOffset()
        ends = [after(1, killed, first)]
        assert ids(killed, first, ends[0]) == [1]
        killed.commit(ends[0])
        # Whoever gets the batch does not look at it, so that Spark asks for no partitions.
        ends.append(after(2, killed, ends[0]))
        # This one Spark does not write down any more.
        ends.append(after(3, killed, ends[1]))
    finally:
        killed.stop()

    again = begun()
    try:
        # What Spark has of the query, then the batch that has to be repeated.
        assert again.partitions(ends[1], ends[1]) == []
        assert ids(again, ends[0], ends[1]) == [2]
        assert again.latestOffset() == ends[2]
        assert ids(again, ends[1], ends[2]) == [3]
        again.commit(ends[2])
        assert ids(again, ends[2], after(4, again, ends[2])) == [4]
    finally:
        again.stop()


def next_end(reader: ChangesReader, before: Offset) -> Offset:
    ends: list[Offset] = []

    def is_there() -> bool:
        ends.append(reader.latestOffset())
        return ends[-1] != before

    wait_until(is_there)
    return ends[-1]


def ids(reader: ChangesReader, start: Offset, end: Offset) -> list[int]:
    rows = (batch for part in reader.partitions(start, end) for batch in reader.read(part))
    return [row["id"] for batch in rows for row in batch.to_pylist()]
