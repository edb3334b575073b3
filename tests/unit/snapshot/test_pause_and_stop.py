"""Tests of signals that pause, resume and stop snapshots."""

from __future__ import annotations

from incsnap.snapshot.commands import Pause, Resume, Stop
from incsnap.snapshot.context import SnapshotContext
from tests.support.snapshots import A, B, C, Snapshots, execute, spans


def test_a_paused_snapshot_plans_nothing_but_releases_what_was_read() -> None:
    job = Snapshots({A: list(range(1, 9))})
    job.batch(execute("s", A))
    paused = job.batch(Pause("p")).context
    still = job.batch().context
    resumed = job.batch(Resume("r")).context

    assert len(paused.released) == 2
    assert paused.planned == still.planned == ()
    assert spans(resumed.planned) == [("a", "4", "6"), ("a", "6", "8")]
    assert [note[:2] for note in job.notified()] == [("s", "STARTED"), ("s", "PAUSED"), ("s", "RESUMED")]


def test_pause_and_resume_without_a_snapshot_only_warn() -> None:
    job = Snapshots({A: [1]})

    assert job.batch(Pause("p")).warnings == ("signal p: no running snapshot to pause",)
    assert job.batch(Resume("r")).warnings == ("signal r: no paused snapshot to resume",)
    assert job.context == SnapshotContext()


def test_a_pause_ends_with_the_snapshot_that_was_paused() -> None:
    job = Snapshots({A: [1, 2, 3], B: [1]})
    job.batch(execute("s", A))
    job.batch(Pause("p"), Stop("x"))

    assert job.batch(execute("t", B)).context.planned


def test_a_pause_ends_with_its_snapshot_even_if_a_new_one_is_signalled_at_once() -> None:
    job = Snapshots({A: list(range(1, 9)), B: [1]})
    job.batch(execute("s", A))
    job.batch(Pause("p"))
    after = job.batch(Stop("x"), execute("t", B)).context

    assert (after.paused, after.paused_by) == (False, "")
    assert spans(after.planned) == [("b", None, "1")]


def test_stop_leaves_nothing_of_a_table_and_sends_nothing_of_it() -> None:
    job = Snapshots({A: list(range(9)), B: [1], C: [1]})
    job.batch(execute("s", A, B), execute("t", C))
    read = job.context.planned
    after = job.batch(Stop("x", frozenset({A, B}))).context

    assert after.released == ()
    assert after.dropped == tuple(window.id for window in read)
    assert spans(after.planned) == [("c", None, "1")]
    assert job.notified()[2:] == [("s", "ABORTED", "db.a,db.b")]
    job.until_done()
    assert [note for note in job.notified() if note[1] == "COMPLETED"] == [("t", "COMPLETED", "")]


def test_stop_of_one_table_lets_the_others_of_the_signal_complete() -> None:
    job = Snapshots({A: list(range(9)), B: [1]})
    job.batch(execute("s", A, B))
    job.batch(Stop("x", frozenset({B})))
    job.until_done()

    assert job.notified()[1:] == [
        ("s", "ABORTED", "db.b"),
        ("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"),
        ("s", "COMPLETED", ""),
    ]


def test_stop_of_everything_and_of_nothing() -> None:
    job = Snapshots({A: list(range(9)), B: [1]})
    job.batch(execute("s", A, B))

    assert job.batch(Stop("w", frozenset())).warnings == ("signal w: no running or waiting snapshot to stop",)
    assert not job.batch(Stop("x")).context.active
    assert job.batch(Stop("y")).warnings == ("signal y: no running or waiting snapshot to stop",)


def test_a_table_whose_last_rows_went_before_is_neither_paused_nor_stopped() -> None:
    """The batch of the signal first reports the end of that table."""
    job = Snapshots({A: [1, 2], B: [1, 2, 3, 4, 5, 6]})
    job.batch(execute("s", A, B))
    job.batch()
    assert "a" in {release.window.table.table for release in job.context.released}
    job.batch(Pause("p"))
    assert job.notified()[1:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "PAUSED", "db.b")]

    one = Snapshots({A: [1, 2]})
    one.batch(execute("s", A))
    one.batch()
    one.batch(execute("s", A))  # the id is free again
    assert one.notified()[1:] == [
        ("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"),
        ("s", "COMPLETED", ""),
        ("s", "STARTED", "db.a"),
    ]


def test_a_table_no_longer_captured_ends_with_a_notification_and_sends_nothing_more() -> None:
    job = Snapshots({A: list(range(1, 9)), B: [1], C: [1]})
    job.batch(execute("s", A, B), execute("t", A))
    job.batch(execute("u", C))
    read = job.context.in_flight
    plan = job.batch(uncaptured=frozenset({A, B}))
    after = plan.context

    assert after.released == ()
    assert set(after.dropped) == {window.id for window in read}
    assert spans(after.planned) == [("c", None, "1")]
    ended = [note for note in after.notifications if note.type == "ABORTED"]
    assert [(note.id, dict(note.fields)["data_collections"]) for note in ended] == [("s", "db.a,db.b"), ("t", "db.a")]
    assert {dict(note.fields)["reason"] for note in ended} == {"it is not captured any more"}
    assert ["db.a,db.b" in plan.warnings[0], "db.a" in plan.warnings[1]] == [True, True]
    job.until_done()
    assert [note for note in job.notified() if note[1] == "COMPLETED"] == [("u", "COMPLETED", "")]


def test_a_pause_ends_with_the_last_table_that_is_not_captured_any_more() -> None:
    job = Snapshots({A: list(range(1, 9))})
    job.batch(execute("s", A))
    job.batch(Pause("p"))
    after = job.batch(uncaptured=frozenset({A})).context

    assert (after.active, after.paused, after.paused_by) == (False, False, "")
