"""The algorithm against a modelled server: I3 (topic = table), I4 (never back in time), I5 (both keys of a re-keying),
I6 (stop leaves nothing), I7 (offset through JSON, each batch), I8 (crashes).

What is checked stands in ``topic_model``; that each rule is needed is shown by ``test_needed_rules``.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings

from tests.property.dice import DICE
from tests.property.habits import HABITS, Habits
from tests.property.job_model import Job

#: A run takes as long as several examples of another property.
_RUNS = settings.get_profile(settings.get_current_profile_name()).max_examples // 3


@settings(max_examples=_RUNS)
@given(habits=HABITS, dice=DICE)
def test_the_topic_becomes_the_table_and_no_key_goes_back_in_time(habits: Habits, dice: random.Random) -> None:
    Job(dice, habits).live()


def test_so_it_is_in_runs_that_nobody_has_made_plain() -> None:
    """Hypothesis stays near the plainest runs: of 25 its runs find "keys of earlier batches forgotten" in 13, "new key
    of a re-keying not discarded" in 2, those of Python's own numbers in 22 and 6. Their failures cannot shrink."""
    for seed in range(1_000, 1_000 + _RUNS):
        Job(random.Random(seed)).live()


@pytest.mark.parametrize("seed", range(5))
def test_a_run_is_repeated_exactly_by_its_seed(seed: int) -> None:
    """By their seeds those of the mutants are known."""
    first, second = (Job(random.Random(seed)) for _ in range(2))
    first.live()
    second.live()

    assert first.topic.buckets == second.topic.buckets
