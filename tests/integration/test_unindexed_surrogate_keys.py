"""Tests of a snapshot in the order of a column without an index, while a writer changes the rows."""

from __future__ import annotations

from typing import Any

import pytest
from pymysql.cursors import Cursor

from incsnap.planner.chunk_readers import ReadOrders
from signals import send
from tests.support.planned_job import ReadersAtHand

pytestmark = pytest.mark.servers

_ROWS = 1_000
#: A change of the column that orders the chunks, forth and back, and changes of other rows.
_CHANGES = (
    "UPDATE a SET aa = aa + 500 WHERE pk % 7 = 0",
    "DELETE FROM a WHERE pk % 11 = 0",
    "UPDATE a SET aa = aa - 900 WHERE pk % 5 = 0",
    "INSERT INTO a VALUES (2000, -5), (2001, 500), (2002, NULL)",
)


@pytest.mark.parametrize("surrogate", ["aa", "AA"])
@pytest.mark.parametrize("is_changed", [False, True], ids=["quiet", "changed"])
def test_a_table_is_read_by_a_column_without_an_index(
    cursor: Cursor,
    make_job: Any,
    database: str,
    topic_prefix: str,
    surrogate: str,
    is_changed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cursor.execute("CREATE TABLE a (pk INTEGER, aa INTEGER, PRIMARY KEY (pk))")
    cursor.executemany("INSERT INTO a VALUES (%s, %s)", [(row + 1, row) for row in range(_ROWS)])
    job = make_job(incremental__snapshot__chunk__size="100")
    read, changes = ReadersAtHand.order, list(_CHANGES) if is_changed else []

    def order(self: ReadersAtHand, message: ReadOrders) -> None:
        for change in changes[:2] if message.orders else ():  # the rows are read in two orders
            cursor.execute(change)
            changes.remove(change)
        read(self, message)

    monkeypatch.setattr(ReadersAtHand, "order", order)
    data = send.snapshot_data([f"{database}.a"], surrogate_key=surrogate)
    send.to_file(job.settings.signals.file, "by-aa", "execute-snapshot", data)
    job.batches_until(lambda: job.offset.batch > 2 and not job.offset.snapshot.active, "end of the snapshot")
    cursor.execute("SELECT pk, aa FROM a")
    values = [each.value for each in job.of(f"{topic_prefix}.{database}.a") if each.value is not None]
    replayed: dict[int, int] = {}
    for value in values:
        if value["op"] == "d":
            replayed.pop(value["before"]["pk"], None)
        else:
            replayed[value["after"]["pk"]] = value["after"]["aa"]

    assert changes == []
    assert replayed == dict(cursor.fetchall())
    reads = sum(value["op"] == "r" for value in values)
    assert reads >= _ROWS // 2 if is_changed else reads == _ROWS
