"""Tests of the rules that close a gap against a modelled server, job and topic, and with wrong rules.

Three things hold at the end. The topic shows the table. No key has gone back in time behind the gap. A key that is the
same was not sent while nobody wrote. Each mutant replaces a rule by a wrong one, and one of the three must break.
"""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings

from incsnap.verify import gap_rules
from tests.property import gap_model
from tests.property.gap_model import RULES, Violation, live, live_calmly

_RUNS = settings.get_profile(settings.get_current_profile_name()).max_examples
#: Most runs until a mutant must be caught.
_MUTANT_RUNS = 4_000


def test_the_topic_shows_the_table_no_key_goes_back_and_nothing_is_sent_in_vain() -> None:
    for seed in range(20 * _RUNS):
        live(random.Random(seed))
        live_calmly(random.Random(seed))


def _by_place(key: Any, row: Any, records: Any, seam: Any) -> bool:
    """Take a record of a high position for one of the new job, as if positions were of one history."""
    is_new = any(each.place is not None and each.place.pos >= 3 for each in records)
    return not is_new and gap_rules_needs(key, row, records, seam)


def _by_presence(key: Any, row: Any, records: Any, seam: Any) -> bool:
    return gap_rules_needs(key, row, records, seam) and not (row is None and records)


def _always(key: Any, row: Any, records: Any, seam: Any) -> bool:
    return True


gap_rules_needs = gap_rules.needs_repair
MUTANTS = {
    "positions of records compared": _by_place,
    "deletions left out": _by_presence,
    "all keys sent": _always,
}


@pytest.mark.parametrize("rule", RULES)
def test_without_this_rule_of_the_job_an_end_is_wrong(rule: str) -> None:
    assert any(_is_wrong(seed, [rule]) for seed in range(_MUTANT_RUNS))


@pytest.mark.parametrize("name", MUTANTS)
def test_with_this_wrong_rule_an_end_is_wrong(name: str) -> None:
    with patch.object(gap_rules, "needs_repair", MUTANTS[name]):
        assert any(_is_wrong(seed) for seed in range(_MUTANT_RUNS))


def _is_wrong(seed: int, without: Any = ()) -> bool:
    try:
        gap_model.live(random.Random(seed), without)
        if not without:
            live_calmly(random.Random(seed))
    except Violation:
        return True
    return False
