"""Tests of a limit of rows per second: it holds over any time, changes only the time, and survives a restart."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from incsnap.snapshot.commands import SetThrottle
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.dataclass_json import from_json, to_json
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.throttle import ROWS
from tests.support.snapshots import A, B, Snapshots, execute, spans

#: Seconds of rows that may be read early: one second to catch up, and one chunk, which has at most a second's rows.
_SECONDS_AHEAD = 2


@given(
    rows=st.integers(1, 60),
    allowed=st.integers(1, 30),
    tick_ms=st.integers(20, 3_000),
    chunk_rows=st.integers(1, 50),
    small_rows=st.sampled_from([0, 5]),
    restarts=st.booleans(),
)
def test_no_more_rows_are_read_than_the_limit_allows(
    rows: int, allowed: int, tick_ms: int, chunk_rows: int, small_rows: int, restarts: bool
) -> None:
    limits = Limits(2, 5, chunk_rows, chunk_rows, small_rows=small_rows, small_windows=4 if small_rows else 0)
    job = Snapshots({A: list(range(rows)), B: list(range(rows))}, limits, tick_ms=tick_ms)
    job.batch(SetThrottle("t", ((ROWS, allowed),)), execute("s", A, B))
    planned: list[tuple[int, int]] = []
    for number in range(2, 40_000):
        if restarts:
            job.context = from_json(SnapshotContext, json.loads(json.dumps(to_json(SnapshotContext, job.context))))
        planned += [(number * tick_ms, len(job.rows(window))) for window in job.log[-1].planned]
        if not job.context.active:
            break
        job.batch()

    assert not job.context.active
    assert sum(count for _, count in planned) == 2 * rows
    for first, (begin, _) in enumerate(planned):
        read = 0
        for at, count in planned[first:]:
            read += count
            assert read <= allowed * ((at - begin) / 1000 + _SECONDS_AHEAD) + 1


@given(rows=st.integers(0, 40), allowed=st.lists(st.integers(0, 20), max_size=6), tick_ms=st.integers(100, 2_000))
def test_a_limit_that_is_changed_and_lifted_changes_nothing_but_time(
    rows: int, allowed: list[int], tick_ms: int
) -> None:
    job = Snapshots({A: list(range(rows))}, Limits(2, 5, 3, 3), tick_ms=tick_ms)
    job.batch(execute("s", A))
    for number, limit in enumerate(allowed):
        job.batch(SetThrottle(f"t{number}", ((ROWS, limit),)))
    job.batch(SetThrottle("free", ((ROWS, 0),)))
    assert job.context.throttle.bounds({}) == {}
    job.until_done()

    sent = [span for context in job.log for span in spans(context.released)]
    assert sorted(row for row in range(rows) for _, low, high in sent if int(low or -1) < row <= int(high)) == list(
        range(rows)
    )
    assert job.notified()[-1][1] == "COMPLETED"


def test_a_limit_makes_up_for_late_batches_but_not_for_an_idle_hour() -> None:
    job = Snapshots({A: list(range(100))}, Limits(4, 40, 50, 50), tick_ms=3_600_000)
    job.batch(SetThrottle("t", ((ROWS, 10),)), execute("s", A))

    # At most one lost second, and the second that begins.
    assert [sum(window.rows for window in context.planned) for context in job.until_done()[:3]] == [20, 20, 20]


def test_nothing_is_asked_of_the_server_while_no_chunk_may_be_planned() -> None:
    job = Snapshots({A: list(range(100))}, Limits(1, 40, 10, 10), tick_ms=100)
    job.batch(SetThrottle("t", ((ROWS, 10),)), execute("s", A))
    job.batch()
    job.batch()
    asked = len(job.asked)
    job.batch()

    assert len(job.asked) == asked
