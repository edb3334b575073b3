"""Tests of several starts of one `topic.prefix`: a consumer sees each change once and in order, and no change is lost.

Each rule is needed: without it, or with a wrong rule in its place, a consumer sees a change twice or never.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest

from incsnap.kafka import announcements, transaction
from incsnap.kafka.announcements import Announcement, StartFacts
from incsnap.planner import one_start, start_steps, where_ended
from incsnap.planner.where_ended import EndedJob
from tests.property.starts_model import Start, Violation, World
from tests.support.profile import NIGHTLY

#: Number of runs with the right rules.
RUNS = 20_000 if NIGHTLY else 100
#: Most runs until a mutant must be caught, from the seed on that is known to catch it.
MUTANT_RUNS = 20

_judge, _first, _where_ended = one_start.judge, announcements.first_announcement, where_ended.where_ended
_delivered_since, _of_own_job = one_start._delivered_since, one_start._of_own_job
_announce, _fence, _hand_over = Start.announce, Start.fence, Start.hand_over


class OneLook(transaction.Transaction):
    """A transaction that looks for another start before it fences, but not after."""

    def step(self, doing: str, call: Callable[[float], Any], patience: float = 1.0, goes_on: Any = None) -> Any:
        """Skip the second look."""
        if doing == "looking for another start" and getattr(self, "looked", False):
            return None
        self.looked = True
        return super().step(doing, call, patience)


def nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def fence_and_announce(self: Start, what: Announcement, *, ended: bool = False) -> None:
    """Fence before the start announces itself, not after."""
    if not what.confirmed:
        self._announcement = what
        _fence(self, what.buckets)
    _announce(self, what, ended=ended)


def newest(_owner: Announcement | None, records: Any) -> Announcement | None:
    """Return the newest announcement, whatever its term."""
    return next(reversed(list(records)), None)


def by_numbers(owner: Announcement, own: Any, prefix: Any) -> str:
    """Compare only the batch numbers of a job that two checkpoints have in common."""
    for job in owner.jobs:
        sent = prefix.delivered(job)
        if job.job == own.job:
            return "" if sent is None or sent <= own.batch else "gone on"
        if job.replaces or sent is not None:
            return "replaced"
    return ""


def by_starts_alone(owner: Announcement, own: Any, prefix: Any) -> str:
    """Take a checkpoint for the newest one if it knows a start of the job."""
    job = next((each for each in owner.jobs if each.job == own.job), None)
    return "" if job is not None and job.start in own.starts else _delivered_since(owner, own, prefix)


def takes_a_copy_for_the_same(owner: Announcement | None, own: Any, prefix: Any, *, replace_job: bool) -> Any:
    """Take the owner for dead if the checkpoint knows the owner's start, even if the checkpoint is a copy."""
    if owner is not None and owner.facts.start in own.starts:
        own = replace(own, lock=owner.facts.lock)
    return _judge(owner, own, prefix, replace_job=replace_job)


def own_buckets(owner: Announcement | None, facts: StartFacts, *, buckets: int, **rest: Any) -> Announcement:
    """Remember a single bucket, not as many as the job before had."""
    return replace(_first(owner, facts, buckets=buckets, **rest), buckets=1)


def inherits(owner: Announcement | None, facts: StartFacts, *, is_own: bool = False, **rest: Any) -> Announcement:
    """Keep the place of the owner's announcement, even on a copy of the checkpoint."""
    made = _first(owner, facts, is_own=is_own, **rest)
    if owner is None or not is_own or facts.job != owner.facts.job:
        return made
    return replace(made, facts=replace(made.facts, place=owner.facts.place))


def furthest(*arguments: Any) -> EndedJob | None:
    """Continue at the place of the furthest bucket."""
    ended = _where_ended(*arguments)
    return replace(ended, sent=()) if ended is not None else None


def before_the_fence(start: Start, jobs: Any, buckets: int) -> EndedJob | None:
    """Use the place that was read before the owner was fenced."""
    first_places = start.__dict__.setdefault("first_places", {})
    if start.id not in first_places:
        first_places[start.id] = _hand_over(start, jobs, buckets)
    place: EndedJob | None = first_places[start.id]
    return place


def unconfirmed_as_it_is(first: Announcement, _before: Announcement) -> Announcement:
    """Believe the announcement of a start that has not looked again."""
    return first


def in_a_take_over(owner: Announcement, own: Any, prefix: Any, *, replace_job: bool) -> Any:
    """Take a copy for complete that was made while the checkpoint was given to a new job."""
    if owner.pending or own.job == owner.facts.job:
        return _of_own_job(owner, own, prefix, replace_job=replace_job)
    return one_start.Verdict()


@dataclass(frozen=True)
class Mutant:
    """A wrong rule, and how it is found."""

    wrong: tuple[tuple[Any, str, Any], ...]  #: (object, name of its attribute, wrong value) for each patch
    seed: int = 0  #: seed of a run that catches it


def mutant(*wrong: tuple[Any, str, Any], seed: int = 0) -> Mutant:
    """Return a mutant."""
    return Mutant(wrong, seed)


MUTANTS = {
    "no look": mutant((transaction, "refuse_another", nothing)),
    "no second look": mutant((transaction, "Transaction", OneLook), seed=20),
    "fenced before the announcement": mutant(
        (Start, "announce", fence_and_announce), (Start, "fence", nothing), seed=10
    ),
    "no fence of all buckets": mutant((Start, "fence", nothing), seed=3),
    "fence of fewer buckets": mutant((start_steps, "first_announcement", own_buckets), seed=39),
    "own announcement not read again": mutant((start_steps, "refuse_another", nothing), seed=530),
    "newest record owns": mutant((announcements, "owner_after", newest), seed=2),
    "refusal not sticky": mutant((one_start, "_delivered_since", lambda *_: "")),
    "batch numbers instead of starts": mutant((one_start, "_delivered_since", by_numbers), seed=275),
    "starts instead of batch numbers": mutant((one_start, "_delivered_since", by_starts_alone), seed=1409),
    "a copy taken for the same checkpoint": mutant((start_steps, "judge", takes_a_copy_for_the_same), seed=592),
    "a copy of a take-over taken for whole": mutant((one_start, "_of_own_job", in_a_take_over), seed=113),
    "a copy keeps the place": mutant((start_steps, "first_announcement", inherits), seed=275),
    "owner of the first look": mutant((Start, "owner_before", nothing), seed=66),
    "owner that never looked again": mutant((announcements, "_behind", unconfirmed_as_it_is), seed=1133),
    "hand-over from the furthest bucket": mutant((where_ended, "where_ended", furthest)),
    "hand-over without marks": mutant((Start, "mark_as_sent", nothing)),
    "hand-over read before the fence": mutant((Start, "hand_over", before_the_fence), seed=8),
    "number not read": mutant((World, "committed_batch", nothing), seed=2),
}


@pytest.mark.parametrize("part", range(4))
def test_a_consumer_sees_each_change_once_whoever_starts(part: int) -> None:
    for seed in range(part * RUNS // 4, (part + 1) * RUNS // 4):
        World(seed).run()


@pytest.mark.parametrize("name", MUTANTS)
def test_without_this_rule_a_consumer_sees_a_change_twice_or_never(name: str) -> None:
    tried = MUTANTS[name]

    assert any(breaks(seed, tried) for seed in range(tried.seed, tried.seed + MUTANT_RUNS))


@pytest.mark.parametrize("seed", sorted({tried.seed for tried in MUTANTS.values()}))
def test_runs_that_caught_a_mutant_hold_with_the_rules(seed: int) -> None:
    World(seed).run()


def breaks(seed: int, tried: Mutant) -> str:
    """Return the kind of violation in a run; "" if there is none."""
    with ExitStack() as wrong:
        for where, name, what in tried.wrong:
            wrong.enter_context(patch.object(where, name, what))
        try:
            World(seed).run()
        except Violation as violation:
            return violation.kind
    return ""
