"""Tests of tables, layouts and servers that change while windows are in flight: chunks are read again or given up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.events import OnlineStep, SchemaChange
from incsnap.snapshot.commands import ChosenRows, DataCollection, Execute
from incsnap.snapshot.next_context import MAX_BEGINNINGS
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.snapshot.questions import Describe, MaximumKey, NotYet
from incsnap.snapshot.refused import RefusedRow
from incsnap.snapshot.window import ChunkResult
from incsnap.tables import TableId
from tests.support.snapshots import A, B, C, Snapshots, alter, execute, position, spans, swap, tool_swap, truncate


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


@pytest.mark.parametrize("brings_tables", [True, False])
def test_a_new_table_alone_asks_again_whether_absent_keys_may_be_deleted(brings_tables: bool) -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5, 6, 7]})
    chosen = DataCollection(A, chosen=ChosenRows(keys="[]", deletes=True))
    job.batch(Execute("s", (chosen,)))
    job.batch()
    job.asked.clear()
    job.batch(changes=(alter(B),), brings_tables=brings_tables)

    assert any(isinstance(each, Describe) for each in job.asked) == brings_tables


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
    job.result = lambda window: ChunkResult(error="shape: the key is no longer the one it was cut by")
    job.fingerprint = "l int"
    job.asked.clear()
    job.batch()
    job.result = None
    job.batch()

    assert [type(question) for question in job.asked[:2]] == [Describe, MaximumKey]
    assert spans(job.context.planned)[0] == ("a", None, "2")
    job.until_done()
    assert job.notified()[-1] == ("s", "COMPLETED", "")


def test_windows_read_by_another_key_are_dropped_when_the_table_begins_again() -> None:
    job = Snapshots({A: list(range(1, 9))})
    job.batch(execute("s", A))
    first, second = job.context.planned
    job.result = lambda window: ChunkResult(error="shape: another key") if window.id == second.id else job.good(window)
    job.fingerprint = "l int"
    waiting = job.batch(pos=100).context
    after = job.batch(pos=100).context

    assert [window.id for window in waiting.held] == [first.id]
    assert after.dropped == (first.id,)
    assert (after.held, after.released) == ((), ())
    assert spans(after.planned) == [("a", None, "2"), ("a", "2", "4")]


def test_a_table_into_which_rows_are_moved_is_begun_again() -> None:
    job = Snapshots({A: list(range(1, 10))})
    job.batch(execute("s", A))
    job.batch()
    before = job.context.in_flight
    job.keys[A] = [11, 12, 13]
    plan = job.batch(changes=(swap(A, B),))

    assert spans(plan.context.planned) == [("a", None, "12"), ("a", "12", "13")]
    assert plan.context.released == ()
    assert {window.id for window in before} <= set(plan.context.dropped)
    assert plan.warnings == ("db.a: a statement has moved rows into it; the table is read from its beginning",)
    job.until_done()
    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "COMPLETED", "")]
    (ended,) = [n for context in job.log for n in context.notifications if n.type == "TABLE_SCAN_COMPLETED"]
    assert dict(ended.fields)["total_rows_scanned"] == "3"


def test_a_table_that_a_tool_swaps_goes_on_at_its_key() -> None:
    job = Snapshots({A: list(range(1, 10))})
    job.batch(execute("s", A))
    job.batch()
    before = job.context.in_flight
    plan = job.batch(changes=(tool_swap(A, B),))

    assert plan.warnings == ()
    assert {window.id for window in before} <= set(plan.context.dropped)
    assert sorted(spans(plan.context.planned)[: len(before)]) == sorted(spans(before))
    sent = [upper for context in job.until_done() for _, _, upper in spans(context.released)]
    assert sorted(sent) == sorted(set(sent))
    (ended,) = [n for context in job.log for n in context.notifications if n.type == "TABLE_SCAN_COMPLETED"]
    assert dict(ended.fields)["total_rows_scanned"] == "9"


def test_a_table_that_a_tool_swaps_begins_again_with_another_key() -> None:
    job = Snapshots({A: list(range(1, 10))})
    job.batch(execute("s", A))
    job.batch()
    job.fingerprint = "k bigint"
    plan = job.batch(changes=(tool_swap(A, B),))

    assert plan.warnings == ("db.a: its key has changed; the table is read from its beginning",)
    assert spans(plan.context.planned)[0] == ("a", None, "2")


@pytest.mark.parametrize("fingerprint", ["k int", "k bigint"])
def test_a_table_begins_again_once_if_a_column_of_its_key_is_another_one(fingerprint: str) -> None:
    job = Snapshots({A: list(range(1, 10))})
    job.batch(execute("s", A))
    job.batch()
    before = job.context.in_flight
    # The new column numbers the same rows in another order. Rows with the keys 1 and 2 were sent under others.
    job.fingerprint = fingerprint
    plan = job.batch(changes=(tool_swap(A, B),), replaced_keys=frozenset({A}))

    assert plan.warnings == ("db.a: a column of its key is another one now; the table is read from its beginning",)
    assert spans(plan.context.planned) == [("a", None, "2"), ("a", "2", "4")]
    assert {window.id for window in before} <= set(plan.context.dropped)
    assert plan.context.scans[0].begun_again == 1


def test_a_replaced_key_begins_nothing_again_before_anything_was_planned() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.answer = lambda question: NotYet() if isinstance(question, MaximumKey) else job.truth(question)
    job.batch(execute("s", A))
    job.answer = None
    plan = job.batch(changes=(alter(A),), replaced_keys=frozenset({A}))

    assert plan.warnings == ()
    assert spans(plan.context.planned) == [("a", None, "2"), ("a", "2", "3")]


@pytest.mark.parametrize("is_begun", [False, True], ids=["waiting", "begun"])
def test_nothing_is_asked_about_a_table_that_a_tool_has_taken_away(is_begun: bool) -> None:
    job = Snapshots({A: list(range(1, 10)), B: [1]})
    if is_begun:
        job.batch(execute("s", A, B))
    keys = job.keys.pop(A)
    taken = (replace(alter(A), online=OnlineStep(kept=frozenset({A}))),)
    job.batch(*(() if is_begun else (execute("s", A, B),)), changes=taken, away=frozenset({A}))
    asked = len(job.asked)
    for _ in range(3):
        job.batch(away=frozenset({TableId("DB", "A")}))  # as the statement spells it
    assert all(getattr(question, "table", B) == B for question in job.asked[asked:])
    job.keys[A] = keys
    job.batch(changes=(tool_swap(A, C),))
    job.until_done()
    ended = [dict(n.fields) for context in job.log for n in context.notifications if n.type == "TABLE_SCAN_COMPLETED"]
    assert {each["scanned_collection"]: each["status"] for each in ended} == {"db.a": "SUCCEEDED", "db.b": "SUCCEEDED"}


def test_a_table_that_has_moved_away_is_not_called_one_that_rows_were_moved_into() -> None:
    job = Snapshots({A: list(range(1, 10))})
    job.batch(execute("s", A))
    del job.keys[A]
    plan = job.batch(changes=(replace(swap(A, B), moved_away=frozenset({A})),))

    assert not any("moved rows into it" in warning for warning in plan.warnings)
    assert plan.context.released == ()
    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "UNKNOWN_SCHEMA"), ("s", "COMPLETED", "")]


def test_chunks_of_a_table_that_is_gone_give_one_warning() -> None:
    job = Snapshots({A: list(range(1, 9))})
    job.batch(execute("s", A))
    assert len(job.context.planned) > 1
    job.result = lambda window: ChunkResult(error="shape: Table 'db.a' doesn't exist")
    del job.keys[A]
    warnings = [warning for _ in range(4) for warning in job.batch().warnings]

    assert len([warning for warning in warnings if "failed, attempt" in warning]) == 1
    assert job.notified()[-1] == ("s", "COMPLETED", "")


def test_parts_that_were_not_sent_before_rows_were_moved_in_are_never_sent() -> None:
    job = Snapshots({A: list(range(1, 10))})
    job.result = lambda window: replace(job.good(window), parts=2, record_bytes=200)
    job.batch(execute("s", A))
    job.batch(release_bytes=1)
    assert any(window.sent for window in job.context.held)
    plan = job.batch(changes=(swap(A, B),))

    assert plan.context.released == ()
    assert plan.context.held == ()


def test_a_table_that_waits_does_not_mind_that_rows_are_moved_into_it() -> None:
    job = Snapshots({A: list(range(1, 10)), C: [1]})
    job.batch(execute("s", A, C))

    assert job.batch(changes=(swap(B, C),)).warnings == ()


def test_rows_moved_in_before_anything_was_planned_begin_nothing_again() -> None:
    job = Snapshots({A: [1, 2, 3]})
    plan = job.batch(execute("s", A), changes=(swap(A, B),))

    assert plan.warnings == ()
    assert spans(plan.context.planned) == [("a", None, "2"), ("a", "2", "3")]


@pytest.mark.parametrize("by", ["rows moved in", "another key"])
def test_a_table_that_is_begun_again_too_often_ends_with_a_status_that_says_so(by: str) -> None:
    job = Snapshots({A: list(range(1, 100)), B: [1]})
    job.batch(execute("s", A, B))
    for number in range(MAX_BEGINNINGS - 1):
        job.batch()
        job.fingerprint = "k int" if by == "rows moved in" else f"k int({number})"
        job.batch(changes=(swap(A, C) if by == "rows moved in" else alter(A),))
    assert job.context.scans
    job.fingerprint = "k int" if by == "rows moved in" else "k varchar"
    plan = job.batch(changes=(swap(A, C) if by == "rows moved in" else alter(A),))

    ended = [("s", "TABLE_SCAN_COMPLETED", "CHANGED_TOO_OFTEN")]
    assert [note for note in job.notified() if note[2] == "CHANGED_TOO_OFTEN"] == ended
    assert any(f"begun {MAX_BEGINNINGS} times" in warning for warning in plan.warnings)
    job.until_done()
    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "COMPLETED", "")]


def test_nothing_of_the_pass_before_is_sent_with_the_batch_that_begins_a_table_again() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.result = lambda window: replace(job.good(window), parts=2, record_bytes=2)
    job.batch(execute("s", A))
    job.batch(release_bytes=1)
    part_of = job.context.released[0].window
    job.fingerprint = "k bigint"
    begun_again = job.batch(changes=(alter(A),)).context
    assert begun_again.scans[0].begun_again == 1
    # Rows that the sink would have left out if it had been given them.
    job.batch(refused=tuple(RefusedRow("", "1", "too large") for _ in begun_again.released))
    job.until_done()

    assert ("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED") in job.notified()
    assert begun_again.released == ()
    assert begun_again.dropped.count(part_of.id) == 1
