"""Tests of the status that is read from a checkpoint while a job writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from incsnap.checkpoint.progress import BucketCounts, add_batch
from incsnap.checkpoint.status import newest_offset, read_status
from incsnap.errors import OffsetError
from incsnap.events import PreparedXa, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.context import Request, Scan, SnapshotContext
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import TableId

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ORDERS, LINES = TableId("shop", "orders"), TableId("shop", "lines")


def written(folder: Path, number: int, text: str, log: str = "offsets") -> None:
    path = folder / "spark" / log / str(number)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def offset(batch: int) -> str:
    scan = Scan(1, Request("s", DataCollection(ORDERS)), 1000, rows_read=77)
    context = SnapshotContext(queue=(Request("s", DataCollection(LINES)),), scans=(scan,), paused=True)
    stream = StreamPosition(GtidSet.parse(f"{UUID}:1-{batch}"), "binlog.000001", batch)
    prepared = (PreparedXa("X'61',X'',1", f"{UUID}:3"),)
    return f"v1\n{{}}\n{json.dumps(Offset('job', batch, stream, TopicLayout(2), context, prepared=prepared).dump())}"


def test_a_job_that_never_ran_has_no_status(tmp_path: Path) -> None:
    assert read_status(str(tmp_path / "nowhere")) is None


def test_the_newest_offset_and_the_counters_make_the_status(tmp_path: Path) -> None:
    written(tmp_path, 9, offset(9))
    written(tmp_path, 10, offset(10))
    written(tmp_path, 9, "v1\n{}", log="commits")
    add_batch(str(tmp_path / "incsnap"), "job", 9, [BucketCounts(events=3, reads=2, discarded=1)])

    status = read_status(str(tmp_path) + "/")

    assert status is not None
    assert (status.batch, status.reading, status.queue, status.rows_read) == (10, (ORDERS,), (LINES,), 77)
    assert status.paused
    assert status.prepared == ("X'61',X'',1",)
    assert (status.sent.events, status.sent.reads, status.sent.discarded) == (3, 2, 1)
    committed = newest_offset(str(tmp_path), "commits")
    assert committed is not None
    assert committed.batch == 9


@pytest.mark.parametrize("torn", ["", "v1", offset(10)[:-20]])
def test_a_torn_newest_file_is_passed_over(tmp_path: Path, torn: str) -> None:
    written(tmp_path, 9, offset(9))
    written(tmp_path, 10, torn)

    status = read_status(str(tmp_path))

    assert status is not None
    assert status.batch == 9


def test_the_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    written(tmp_path, 0, 'v1\n{}\n{"topic": {"0": 1}}')

    with pytest.raises(OffsetError, match="not an offset of incsnap"):
        read_status(str(tmp_path))
