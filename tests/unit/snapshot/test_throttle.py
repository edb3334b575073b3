"""Tests of limits on loads: an unknown load, or one above its limit, stops the planning of chunks and nothing else."""

from __future__ import annotations

import json

import pytest

from incsnap.snapshot.commands import SetThrottle
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.dataclass_json import from_json, to_json
from incsnap.snapshot.load import MeasuredLoad
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.throttle import LIMITS, REPLICA_LAG, ROWS, STREAM_LAG, THREADS_RUNNING
from signals.parse import SIGNALLED_LIMITS, THROTTLE_LIMITS
from tests.support.job_settings import loaded_with
from tests.support.snapshots import A, Snapshots, execute

_LIMIT = {THREADS_RUNNING: 20}
_CALM, _BUSY = (MeasuredLoad(THREADS_RUNNING, 20),), (MeasuredLoad(THREADS_RUNNING, 21),)


@pytest.fixture
def job() -> Snapshots:
    return Snapshots({A: list(range(10))})


def test_no_chunk_is_planned_while_a_load_is_above_its_limit(job: Snapshots) -> None:
    before = job.batch(execute("s", A), configured=_LIMIT, loads=_CALM).context
    during = job.batch(configured=_LIMIT, loads=_BUSY)
    after = job.batch(configured=_LIMIT, loads=_CALM).context

    assert before.planned
    assert not during.context.planned
    assert during.held_back is not None
    assert during.held_back.why == (
        "throttled: 21 threads run on the server, more than the 20 threads of incsnap.snapshot.throttle.threads.running"
    )
    assert after.planned


def test_rows_that_were_read_are_sent_while_a_load_is_above_its_limit(job: Snapshots) -> None:
    job.batch(execute("s", A), configured=_LIMIT, loads=_CALM)

    assert job.batch(configured=_LIMIT, loads=_BUSY).context.released


@pytest.mark.parametrize(
    ("loads", "why"),
    [
        ((), "it is being asked for"),
        ((MeasuredLoad(THREADS_RUNNING, None, trouble="no answer for 12 s"),), "no answer for 12 s"),
    ],
)
def test_an_unknown_load_counts_as_too_high(job: Snapshots, loads: tuple[MeasuredLoad, ...], why: str) -> None:
    plan = job.batch(execute("s", A), configured=_LIMIT, loads=loads)

    assert not plan.context.planned
    assert plan.held_back is not None
    assert why in plan.held_back.why


def test_the_slowest_replica_counts_and_is_named(job: Snapshots) -> None:
    loads = (MeasuredLoad(REPLICA_LAG, 0, "one:3306"), MeasuredLoad(REPLICA_LAG, 9_000, "other:3306"))
    plan = job.batch(execute("s", A), SetThrottle("spare", ((REPLICA_LAG, 5_000),)), loads=loads)

    assert plan.held_back is not None
    assert plan.held_back.why == (
        "throttled: replica other:3306 is 9,000 ms behind, more than the 5,000 ms of signal spare"
    )


def test_no_chunk_is_planned_while_the_stream_lags_more_than_its_limit(job: Snapshots) -> None:
    limit = loaded_with(incsnap__snapshot__throttle__stream__lag__ms="500").settings.snapshot.throttle
    calm = job.batch(execute("s", A), configured=limit, loads=(MeasuredLoad(STREAM_LAG, 500),)).context
    late = job.batch(configured=limit, loads=(MeasuredLoad(STREAM_LAG, 501),))

    assert calm.planned
    assert not late.context.planned
    assert late.held_back is not None
    assert late.held_back.why == (
        "throttled: the stream is 501 ms behind the server,"
        " more than the 500 ms of incsnap.snapshot.throttle.stream.lag.ms"
    )


def test_a_signal_changes_the_limits_that_it_names_and_leaves_the_others(job: Snapshots) -> None:
    job.batch(SetThrottle("one", ((THREADS_RUNNING, 5), (REPLICA_LAG, 100))), configured=_LIMIT)
    plan = job.batch(SetThrottle("two", ((THREADS_RUNNING, 6),)), configured=_LIMIT)

    assert {each.name: (each.most, each.signal) for each in plan.bounds.values()} == {
        REPLICA_LAG: (100, "one"),
        THREADS_RUNNING: (6, "two"),
    }


def test_a_signal_lifts_what_the_settings_have_and_gives_it_back(job: Snapshots) -> None:
    lifted = job.batch(SetThrottle("off", ((THREADS_RUNNING, 0),)), configured=_LIMIT)
    restarted = job.context = from_json(SnapshotContext, json.loads(json.dumps(to_json(SnapshotContext, job.context))))
    still = job.batch(configured=_LIMIT)
    again = job.batch(SetThrottle("on", ((THREADS_RUNNING, None),)), configured=_LIMIT)

    assert not lifted.bounds
    assert not still.bounds
    assert restarted.throttle.asked
    assert [(each.most, each.signal) for each in again.bounds.values()] == [(20, "")]


def test_rows_a_second_of_the_settings_are_a_limit_too(job: Snapshots) -> None:
    planned = job.batch(execute("s", A), configured={ROWS: 1}).context.planned

    # one second to make up for, which is the most, and the second that begins
    assert sum(window.rows for window in planned) == 2
    assert job.batch(configured={ROWS: 1}).context.throttle.next_ms > 2_000


def test_signals_and_settings_have_the_same_limits() -> None:
    assert tuple(SIGNALLED_LIMITS) == LIMITS
    assert tuple(THROTTLE_LIMITS) == LIMITS[:-1]


def test_a_signal_makes_the_next_chunks_smaller_and_larger_again() -> None:
    job = Snapshots({A: list(range(100))}, Limits(parallelism=1, windows=1, start_rows=20, max_rows=20))
    job.batch(execute("s", A))
    job.batch(SetThrottle("small", (("chunk-rows", 5),)))
    small = job.batch()
    job.batch(SetThrottle("large", (("chunk-rows", None),)))
    large = job.batch()

    rows = [[window.rows for window in plan.context.planned] for plan in (small, large)]
    assert rows == [[5], [20]]
    assert small.held_back is None
