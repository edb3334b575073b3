"""Tests of the bound of a batch's binlog bytes, which follows the measured bytes of output."""

from __future__ import annotations

import pytest

from incsnap.planner.output_bound import LEAST_BYTES, MOST_BYTES, OUTPUT_BYTES, START_BYTES, OutputBound


@pytest.mark.parametrize("growth", [5, 60, 300])
def test_a_full_batch_puts_out_what_fits_whatever_its_rows_grow_to(growth: int) -> None:
    bound = OutputBound()
    for _ in range(20):
        bound.batch_gave(bound.bytes, bound.bytes * growth)

    assert bound.bytes * growth <= OUTPUT_BYTES * 1.01
    assert bound.bytes == min(MOST_BYTES, OUTPUT_BYTES // growth)


def test_a_table_of_narrow_rows_behind_one_of_wide_rows_bounds_the_next_batch() -> None:
    bound = OutputBound()
    for _ in range(20):
        bound.batch_gave(bound.bytes, bound.bytes)
    assert bound.bytes == MOST_BYTES
    bound.batch_gave(MOST_BYTES, 60 * MOST_BYTES)
    assert bound.bytes == OUTPUT_BYTES // 60


def test_small_batches_say_nothing() -> None:
    bound = OutputBound()
    bound.batch_gave(1_000, 900_000)
    bound.batch_gave(0, 0)
    assert bound.bytes == START_BYTES


def test_a_batch_always_takes_something() -> None:
    bound = OutputBound()
    for _ in range(20):
        bound.batch_gave(bound.bytes, 1 << 40)
    assert bound.bytes == LEAST_BYTES


def test_the_least_bound_is_left_again_by_batches_that_do_not_quite_fill_it() -> None:
    bound = OutputBound(LEAST_BYTES)
    bound.batch_gave(LEAST_BYTES - 1_000, LEAST_BYTES)
    assert bound.bytes == 2 * LEAST_BYTES
