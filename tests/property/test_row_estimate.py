"""A test of the estimated row count: its interval contains everything that is certain, and closes when everything
is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from incsnap.monitoring.row_estimate import expected_rows, share_of_keys

ROWS = st.integers(0, 10**12)
SHARES = st.none() | st.floats(0, 1)


@given(ROWS, ROWS, st.none() | ROWS, SHARES)
def test_the_likely_lies_in_the_interval_and_what_is_read_is_in_it(
    read: int, being_read: int, statistics: int | None, share: float | None
) -> None:
    estimate = expected_rows(read, being_read, statistics, share)

    if estimate is None:
        assert statistics is None
        assert share is None or share < 0.001
    else:
        assert read <= estimate.low <= estimate.likely <= estimate.high


@given(ROWS, st.none() | ROWS)
def test_a_table_that_is_wholly_read_has_the_rows_that_were_read(read: int, statistics: int | None) -> None:
    estimate = expected_rows(read, 0, statistics, 1.0)

    assert estimate is not None
    assert (estimate.low, estimate.likely, estimate.high) == (read, read, read)


@given(st.integers(2, 10**6), st.integers(1, 99))
def test_evenly_spread_keys_are_counted_right_whatever_the_statistics_say(rows: int, percent: int) -> None:
    done = rows * percent // 100
    estimate = expected_rows(done, 0, rows // 2, done / rows)

    if done:
        assert estimate is not None
        assert estimate.low <= rows <= estimate.high + 1


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**9), st.integers(1, 10**9))
def test_the_share_of_keys_is_how_far_they_have_come(least: int, up: int, more: int) -> None:
    estimate = share_of_keys(str(least), str(least + up), str(least + up + more))

    assert estimate is not None
    assert abs(estimate - up / (up + more)) < 1e-6


@given(st.text(max_size=8), st.none() | st.text(max_size=8), st.none() | st.text(max_size=8))
def test_any_text_as_a_key_gives_a_share_or_none(least: str, at: str | None, maximum: str | None) -> None:
    estimate = share_of_keys(least, at, maximum)

    assert estimate is None or 0 <= estimate <= 1
