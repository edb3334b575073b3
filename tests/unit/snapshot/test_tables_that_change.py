"""Tables, layouts and servers that change while windows are in flight: what is read again, and what is given up."""

from __future__ import annotations

import pytest

from incsnap.events import SchemaChange
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.snapshot.questions import Describe, MaximumKey
from incsnap.snapshot.window import Reading
from tests.support.snapshots import A, B, Snapshots, alter, execute, position, spans, truncate


@pytest.mark.parametrize("change", [alter(A), truncate(A), SchemaChange(None, "db", "?"), SchemaChange(None, "", "?")])
def test_a_schema_change_drops_the_windows_of_its_table_and_reads_them_again(change: SchemaChange) -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A))
    before = job.context.planned
    after = job.batch(changes=(change,)).context

    assert after.released == ()
    assert sorted(after.dropped) == sorted(window.id for window in before)
    assert sorted(spans(after.planned), key=str) == sorted(spans(before), key=str)
    assert not {window.id for window in after.planned} & {window.id for window in before}


def test_a_schema_change_of_another_table_is_no_matter() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A))

    assert len(job.batch(changes=(alter(B), SchemaChange(None, "elsewhere", "?"))).context.released) == 2


def test_a_table_whose_key_changes_is_begun_again() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5, 6, 7]})
    job.batch(execute("s", A))
    job.batch()
    job.fingerprint = "k varchar"
    plan = job.batch(changes=(alter(A),))

    assert spans(plan.context.planned) == [("a", None, "2"), ("a", "2", "4")]
    assert any("key has changed" in warning for warning in plan.warnings)


def test_a_key_that_is_made_anew_in_another_direction_is_read_from_its_beginning() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5, 6, 7]})
    job.batch(execute("s", A))
    job.batch()
    job.descending, job.fingerprint = ("k",), "k int descending"
    job.batch(changes=(alter(A),))

    assert spans(job.context.planned) == [("a", None, "6"), ("a", "6", "4")]
    assert all(
        read.chunk.descending == ("k",) for read in Offset("j", 3, position(20), TopicLayout(1), job.context).reads()
    )
    job.until_done()
    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "COMPLETED", "")]


def test_a_table_dropped_on_the_way_ends_as_unknown() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A))
    del job.keys[A]
    job.batch(changes=(alter(A),))

    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "UNKNOWN_SCHEMA"), ("s", "COMPLETED", "")]


def test_rows_read_on_another_server_are_read_again() -> None:
    job = Snapshots({A: [1, 2]})
    job.batch(execute("s", A), pos=10)
    job.batch(pos=10)
    assert len(job.context.held) == 1
    job.server_uuid = "another"
    job.batch()

    assert job.context.released == ()
    assert spans(job.context.planned) == [("a", None, "2")]


def test_windows_are_read_again_when_the_layout_changes() -> None:
    job = Snapshots({A: [1, 2]})
    job.batch(execute("s", A))
    job.batch(outdated=True)

    assert job.context.released == ()
    assert spans(job.context.planned) == [("a", None, "2")]


def test_a_chunk_that_meets_other_columns_lets_the_table_be_described_anew() -> None:
    job = Snapshots({A: list(range(1, 9))})
    job.batch(execute("s", A))
    job.reading = lambda window: Reading(error="shape: the key is no longer the one it was cut by")
    job.fingerprint = "l int"
    job.asked.clear()
    job.batch()
    job.reading = None
    job.batch()

    assert [type(question) for question in job.asked[:2]] == [Describe, MaximumKey]
    assert spans(job.context.planned)[0] == ("a", None, "2")
    job.until_done()
    assert job.notified()[-1] == ("s", "COMPLETED", "")


def test_what_was_read_by_another_key_is_dropped_when_the_table_begins_again() -> None:
    job = Snapshots({A: list(range(1, 9))})
    job.batch(execute("s", A))
    first, second = job.context.planned
    job.reading = lambda window: Reading(error="shape: another key") if window.id == second.id else job.good(window)
    job.fingerprint = "l int"
    waiting = job.batch(pos=100).context
    after = job.batch(pos=100).context

    assert [window.id for window in waiting.held] == [first.id]
    assert after.dropped == (first.id,)
    assert (after.held, after.released) == ((), ())
    assert spans(after.planned) == [("a", None, "2"), ("a", "2", "4")]
