"""Tests of changes that are left out of the stream: the windows of their table are read again."""

from __future__ import annotations

from incsnap.snapshot.commands import LeaveOut
from tests.support.snapshots import A, B, Snapshots, execute, spans


def test_windows_of_a_table_whose_changes_are_left_out_are_read_again() -> None:
    job = Snapshots({A: [1, 2, 3, 4], B: [1]})
    job.batch(execute("s", A, B))
    read = job.context.planned
    after = job.batch(LeaveOut("u", A, "binlog.000001:4", "nobody knows")).context

    assert set(after.dropped) == {window.id for window in read if window.table == A}
    assert {span for span in spans(after.planned) if span[0] == "a"} >= {span for span in spans(read) if span[0] == "a"}
    assert ("u", "ROWS_LEFT_OUT") in [note[:2] for note in job.notified()]
    job.until_done()
    assert [note[:2] for note in job.notified()][-1] == ("s", "COMPLETED")


def test_a_left_out_table_is_reported_once() -> None:
    job = Snapshots({A: [1]})
    job.batch(LeaveOut("u", A, "binlog.000001:4", "nobody knows", is_repeated=True))
    assert job.notified() == []
