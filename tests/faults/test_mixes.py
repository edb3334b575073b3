"""The table of mixes is complete: each value meets each other value, and each rule occurs."""

from __future__ import annotations

from itertools import combinations, product

from tests.faults.matrix import rows, shares
from tests.faults.mixes import MIXES, Checkpoint, First, Rule, Storage
from tests.faults.two_starts import ROWS

FACTORS = {
    "place": tuple(Storage),
    "checkpoint": tuple(Checkpoint),
    "first": tuple(First),
    "same_server_id": (True, False),
    "fewer_buckets": (True, False),
    "replace_job": (True, False),
}


def test_each_value_meets_each_value_of_every_other_factor() -> None:
    lacking = [
        (one, value, other, against)
        for one, other in combinations(FACTORS, 2)
        for value, against in product(FACTORS[one], FACTORS[other])
        if not any(getattr(mix, one) is value and getattr(mix, other) is against for mix in MIXES)
    ]

    assert lacking == []
    assert len(set(MIXES)) == len(MIXES)


def test_each_pair_of_checkpoint_and_first_jobs_state_occurs_with_each_answer() -> None:
    met = {(mix.checkpoint, mix.first, mix.replace_job) for mix in MIXES}

    assert met == set(product(Checkpoint, First, (True, False)))


def test_each_rule_is_met() -> None:
    assert {mix.rule for mix in MIXES} == set(Rule)


def test_the_whole_matrix_does_all_of_them() -> None:
    known = rows(longest_hold=30.0)
    given = shares(list(known), known, 200)

    for name, (_, place) in ROWS.items():
        assert given[name] >= sum(1 for mix in MIXES if mix.place is place)
