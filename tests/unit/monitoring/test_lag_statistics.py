"""Tests of the statistics of the lags of batches."""

from __future__ import annotations

import random

import pytest

from incsnap.monitoring.lag_statistics import LagSketch, LagStatistics


def sketch_of(lags: list[int]) -> LagSketch:
    sketch = LagSketch()
    for lag in lags:
        sketch.add(lag)
    return sketch


def test_without_a_lag_there_are_no_statistics() -> None:
    assert LagSketch().statistics() is None


def test_one_lag_is_each_of_its_statistics() -> None:
    assert sketch_of([70]).statistics() == LagStatistics(70, 70, 70.0, 70, 70, 70)


def test_batches_without_a_lag_count() -> None:
    statistics = sketch_of([0] * 90 + [1_000] * 10).statistics()

    assert statistics is not None
    assert (statistics.min_ms, statistics.max_ms, statistics.average_ms, statistics.p50_ms) == (0, 1_000, 100.0, 0.0)
    assert statistics.p95_ms == pytest.approx(1_000, rel=0.011)


@pytest.mark.parametrize("most", [3, 1_000, 10**9])
def test_percentiles_are_right_within_one_percent(most: int) -> None:
    numbers = random.Random(most)
    lags = [int(most ** numbers.random()) for _ in range(10_001)]
    statistics, in_order = sketch_of(lags).statistics(), sorted(lags)

    assert statistics is not None
    assert (statistics.min_ms, statistics.max_ms) == (in_order[0], in_order[-1])
    assert statistics.average_ms == pytest.approx(sum(lags) / len(lags))
    for percentile, value in ((5_000, statistics.p50_ms), (9_500, statistics.p95_ms), (9_900, statistics.p99_ms)):
        assert value == pytest.approx(in_order[percentile], rel=0.0101)


def test_the_memory_does_not_grow_with_the_number_of_lags() -> None:
    four_months = 120 * 86_400_000
    sketch = sketch_of([*range(20_000), *range(20_000, four_months, 1_000_003)])

    assert len(sketch._counts) <= 1_200
