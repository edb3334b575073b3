"""Tests of the proof of `incsnap verify` against a modelled server, connector and topic, and with wrong rules.

No difference may be reported that is none, no key may be called equal that was not, and each difference must be found
at the end. Each mutant replaces a rule by a wrong one, and one of the three must break.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from incsnap.verify import proof, rounds
from incsnap.verify.proof import Observation, Reached
from tests.property import verify_model
from tests.property.hypothesis_random import RANDOMS
from tests.property.verify_model import Violation, live

_RUNS = settings.get_profile(settings.get_current_profile_name()).max_examples
#: Most runs until a mutant must be caught.
_MUTANT_RUNS = 3_000


@given(rng=RANDOMS)
def test_without_a_fault_no_difference_is_reported(rng: random.Random) -> None:
    live(rng, faults=False)


@given(rng=RANDOMS)
def test_faults_are_found_and_sound_keys_are_equal(rng: random.Random) -> None:
    live(rng, faults=True)


@pytest.mark.parametrize("faults", [False, True])
def test_random_runs_hold(faults: bool) -> None:
    for seed in range(20 * _RUNS):
        live(random.Random(seed), faults=faults)


def _rows_first(sides: Any, keys: Any) -> Observation[Any, Any]:
    rows = sides.select(keys)
    low = sides.low()
    return Observation(low, rows, sides.topic(keys), sides.high())


def _high_first(sides: Any, keys: Any) -> Observation[Any, Any]:
    low, high = sides.low(), sides.high()
    return Observation(low, sides.select(keys), sides.topic(keys), high)


def _executed_as_high(sides: Any, keys: Any) -> Observation[Any, Any]:
    seen = proof.observe(sides, keys)
    return replace(seen, high=sides.executed_end())


def _judging(alter: Callable[[dict[str, Any]], None]) -> Any:
    def wrong(key: Any, row: Any, record: Any, low: Any, events: Any, reached: Any) -> Any:
        given = {"events": events, "reached": reached}
        alter(given)
        return proof.judge(key, row, record, low, given["events"], given["reached"])

    return wrong


def _changed_ignored(given: dict[str, Any]) -> None:
    given["events"] = replace(given["events"], changed=frozenset())


def _older_events_ignored(given: dict[str, Any]) -> None:
    given["events"] = replace(given["events"], last={})


def _unread_events_ignored(given: dict[str, Any]) -> None:
    given["events"] = replace(given["events"], begins={})


def _weak_as_strong(given: dict[str, Any]) -> None:
    reached = given["reached"]
    given["reached"] = Reached(max(filter(None, (reached.strong, reached.weak)), default=None), None)


def _all_but(kind: str) -> Callable[[verify_model.Change], Any]:
    due_of = verify_model.due_of
    return lambda change: None if change.kind == kind else due_of(change)


def _record_at_its_place(key: Any, low: Any, events: Any, place: Any, own: Any = None) -> bool:
    return proof_has_reached(key, low, events, place, place)


proof_has_reached = proof.has_reached

MUTANTS = {
    "SELECT before the low watermark": (rounds, "observe_sides", _rows_first),
    "high watermark before the SELECT": (rounds, "observe_sides", _high_first),
    "high watermark from gtid_executed": (rounds, "observe_sides", _executed_as_high),
    "changed keys judged": (rounds, "judge", _judging(_changed_ignored)),
    "events before the low watermark ignored": (rounds, "judge", _judging(_older_events_ignored)),
    "events that cannot be read ignored": (rounds, "judge", _judging(_unread_events_ignored)),
    "other partitions as strong evidence": (rounds, "judge", _judging(_weak_as_strong)),
    "the highest place of a partition": (verify_model, "reached_by", lambda places: max(places, default=None)),
    "compressed transactions due at their place": (verify_model, "due_of", _all_but("compressed")),
    "XA transactions due at XA PREPARE": (verify_model, "due_of", _all_but("XA")),
    "another key's record as evidence at its place": (proof, "has_reached", _record_at_its_place),
    "evidence not needed": (proof, "has_reached", lambda *_: True),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_without_this_rule_an_answer_is_wrong(name: str) -> None:
    with patch.object(*MUTANTS[name]):
        caught = next((kind for seed in range(_MUTANT_RUNS) if (kind := _violation(seed))), None)
    assert caught in ("false alarm", "wrong equal", "missed")


def _violation(seed: int) -> str | None:
    try:
        live(random.Random(seed), faults=False)
    except Violation as violation:
        return violation.kind
    return None
