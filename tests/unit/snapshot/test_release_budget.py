"""Tests of the budget for window rows, which follows the time that batches take."""

from __future__ import annotations

from incsnap.snapshot.pacing import BATCHES, LEAST_BYTES, MOST_BYTES, QUIET, ReleaseBudget

FIXED, BYTES_A_SECOND = 0.04, 170e6


def settled(target: float, *, fixed: float = FIXED, speed: float = BYTES_A_SECOND) -> float:
    """Return the seconds that a batch takes after fifty batches have adapted the budget.

    `target` is in seconds. A batch takes `fixed` seconds, and sends `speed` bytes per second.
    """
    budget = ReleaseBudget(target)
    seconds = 0.0
    for _ in range(50):
        seconds = fixed + budget.bytes / speed
        budget.batch_took(seconds, budget.bytes)
    return seconds


def test_a_batch_settles_at_a_quarter_of_the_target() -> None:
    assert abs(settled(0.25) - 0.25 / BATCHES) < 0.01
    assert abs(settled(0.6) - 0.6 / BATCHES) < 0.03


def test_a_quiet_stream_gives_the_snapshot_more() -> None:
    assert settled(QUIET * 0.25) > 0.85 * QUIET * 0.25 / BATCHES


def test_the_budget_keeps_its_bounds() -> None:
    budget = ReleaseBudget(0.25)
    for _ in range(50):
        budget.batch_took(60.0, budget.bytes)
    assert budget.bytes == LEAST_BYTES
    for _ in range(50):
        budget.batch_took(0.001, budget.bytes)
    assert budget.bytes == MOST_BYTES


def test_a_batch_that_sent_little_or_nothing_of_windows_says_nothing_about_more() -> None:
    budget = ReleaseBudget(0.25)
    before = budget.bytes
    budget.batch_took(0.01, 0)
    budget.batch_took(0.01, before // 4)
    budget.batch_took(9.0, 0)
    assert budget.bytes == before
