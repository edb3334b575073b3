"""The algorithm against a modelled server: I3 (topic = table), I4 (never back in time), I5 (both keys of a re-keying),
I6 (stop leaves nothing), I7 (offset through JSON, each batch), I8 (crashes).

What is checked stands in ``topic_model``; that each rule is needed is shown by ``test_needed_rules``.
"""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.habits import HABITS, Habits
from tests.property.job_model import Job

#: A run takes as long as several examples of another property.
_EXAMPLES = settings.get_profile(settings.get_current_profile_name()).max_examples // 3


@settings(max_examples=_EXAMPLES)
@given(habits=HABITS, seed=st.integers(0, 2**32 - 1))
def test_the_topic_becomes_the_table_and_no_key_goes_back_in_time(habits: Habits, seed: int) -> None:
    Job(random.Random(seed), habits).live()


@settings(max_examples=5)
@given(habits=HABITS, seed=st.integers(0, 2**32 - 1))
def test_a_run_is_repeated_exactly_by_its_seed(habits: Habits, seed: int) -> None:
    first, second = (Job(random.Random(seed), habits) for _ in range(2))
    first.live()
    second.live()

    assert first.topic.buckets == second.topic.buckets
