"""Tests of windows that are read beside the stream and released in parts, batch by batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.events import SchemaChange
from incsnap.snapshot.engine import Plan
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import discard_batches
from tests.support.snapshots import A, B, C, Snapshots, alter, execute, spans, truncate


def test_few_borders_are_looked_for_in_a_batch_but_small_tables_need_none() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5], B: [1], C: [1]}, Limits(4, 8, 2, 2, cuts=1))
    planned = [spans(job.batch(*commands).context.planned) for commands in ((execute("s", A, B, C),), (), ())]

    assert planned == [[("a", None, "2")], [("a", "2", "4")], [("a", "4", "5"), ("b", None, "1"), ("c", None, "1")]]


def test_a_chunk_that_is_read_later_holds_keys_from_the_batch_behind_its_own() -> None:
    job = Snapshots({A: [1, 2]})
    job.result = lambda window: None
    job.batch(execute("s", A))
    assert job.context.held_tables() == frozenset()
    for _ in range(3):
        job.batch()
        assert job.context.held_tables() == {A}
    job.result = None
    (release,) = job.batch().context.released

    assert discard_batches(release.window, job.number) == range(2, 5)


def in_parts(job: Snapshots, parts: int) -> None:
    """Let each chunk that is read have `parts` parts of 100 bytes."""
    job.result = lambda window: replace(job.good(window), record_bytes=100 * parts, parts=parts)


def sent(plan: Plan) -> list[tuple[int, int]]:
    """Return for each released window the first part that is sent and the part after the last one."""
    return [(release.window.sent, release.upto) for release in plan.context.released]


def test_a_window_is_released_in_parts_within_the_budget() -> None:
    job = Snapshots({A: [1, 2]})
    in_parts(job, 5)
    job.batch(execute("s", A))

    assert [sent(job.batch(release_bytes=250)) for _ in range(3)] == [[(0, 2)], [(2, 4)], [(4, 5)]]
    job.batch()
    assert job.notified()[-1] == ("s", "COMPLETED", "")


def test_one_part_is_sent_however_small_the_budget() -> None:
    job = Snapshots({A: [1, 2]})
    in_parts(job, 2)
    job.batch(execute("s", A))

    assert [sent(job.batch(release_bytes=0)) for _ in range(2)] == [[(0, 1)], [(1, 2)]]


def test_only_one_window_is_cut_short() -> None:
    job = Snapshots({A: [1, 2, 3, 4]})
    in_parts(job, 3)
    job.batch(execute("s", A))

    assert sent(job.batch(release_bytes=200)) == [(0, 2)]
    assert sent(job.batch(release_bytes=200)) == [(2, 3), (0, 1)]


@pytest.mark.parametrize("change", [truncate(A), alter(A)])
def test_the_rest_of_a_window_is_sent_before_a_later_statement(
    change: SchemaChange,
) -> None:
    job = Snapshots({A: [1, 2, 3, 4]})
    in_parts(job, 3)
    job.batch(execute("s", A))
    job.batch(release_bytes=100)
    plan = job.batch(changes=(change,), release_bytes=0)

    assert sent(plan) == [(1, 3)]
    assert plan.context.dropped == ("1-1",), "nothing was sent of the second one: it is read again"


def test_a_window_of_which_a_part_was_sent_needs_no_position_of_the_server_any_more() -> None:
    job = Snapshots({A: [1, 2]})
    in_parts(job, 2)
    job.batch(execute("s", A))
    job.batch(release_bytes=0)
    job.server_uuid = "another"

    assert sent(job.batch(pos=1)) == [(1, 2)]


def test_no_chunk_is_planned_while_the_stream_is_behind() -> None:
    job = Snapshots({A: [1, 2]})
    assert job.batch(execute("s", A), has_backlog=True).context.planned == ()
    assert spans(job.batch().context.planned) == [("a", None, "2")]


def test_a_window_that_waits_behind_too_many_batches_is_read_again() -> None:
    job = Snapshots({A: [1, 2]}, Limits(2, 4, 2, 2, held_batches=3))
    job.batch(execute("s", A), pos=10)
    for _ in range(4):
        job.batch(pos=20)
        assert len(job.context.held) == 1

    assert job.batch(pos=20).context.dropped == ("1-0",)
    assert spans(job.context.planned) == [("a", None, "2")]
