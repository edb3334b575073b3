"""Two and more starts of one ``topic.prefix``: a consumer sees each change once, in order, and none is lost.

Each rule is needed: without it, or with a wrong one in its place, a consumer sees a change twice or never.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest

from incsnap.kafka import announcements, transaction
from incsnap.kafka.announcements import Announcement, StartFacts
from incsnap.planner import one_start
from tests.property import starts_model
from tests.property.starts_model import Checkpoint, HandOver, Start, Violation, World

#: Runs of the rules as they are.
RUNS = 20_000 if os.environ.get("INCSNAP_PROFILE") == "nightly" else 100
#: Runs in which every mutant must have been caught, from the one on that is known to catch it.
MUTANT_RUNS = 20

_judge, _first, _hand_over = one_start.judge, announcements.first_announcement, starts_model.hand_over
_delivered_since, _of_own_job = one_start._delivered_since, one_start._of_own_job
_announce, _fence = Start._announce, Start.fence


class OneLook(transaction.Transaction):
    """Looks for another start before it fences, and not behind it."""

    def step(self, doing: str, call: Callable[[float], Any], patience: float = 1.0) -> Any:
        """Leave the second look out."""
        if doing == "looking for another start" and getattr(self, "looked", False):
            return None
        self.looked = True
        return super().step(doing, call, patience)


def nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def fence_and_announce(self: Start, what: Announcement, *, ended: bool = False) -> None:
    """Fence before the start announces itself."""
    if not what.confirmed:
        self._announcement = what
        _fence(self, what.buckets)
    _announce(self, what, ended=ended)


def newest(_owner: Announcement | None, records: Any) -> Announcement | None:
    """Return the newest record, whatever its term."""
    return next(reversed(list(records)), None)


def by_numbers(owner: Announcement, own: Any, prefix: Any) -> str:
    """Compare the numbers of batches of a job that two checkpoints have in common."""
    for job in owner.jobs:
        sent = prefix.delivered(job)
        if job.job == own.job:
            return "" if sent is None or sent <= own.batch else "gone on"
        if job.replaces or sent is not None:
            return "replaced"
    return ""


def by_starts_alone(owner: Announcement, own: Any, prefix: Any) -> str:
    """Believe a checkpoint that knows a start of the job to be the newest one."""
    job = next((each for each in owner.jobs if each.job == own.job), None)
    return "" if job is not None and job.start in own.starts else _delivered_since(owner, own, prefix)


def takes_a_copy_for_the_same(owner: Announcement | None, own: Any, prefix: Any, *, replace_job: bool) -> Any:
    """Believe of any checkpoint that knows the owner's start that it proves the owner dead."""
    if owner is not None and owner.facts.start in own.starts:
        own = replace(own, lock=owner.facts.lock)
    return _judge(owner, own, prefix, replace_job=replace_job)


def own_buckets(owner: Announcement | None, facts: StartFacts, *, buckets: int, **rest: Any) -> Announcement:
    """Remember the buckets of one job alone, the smallest."""
    return replace(_first(owner, facts, buckets=buckets, **rest), buckets=1)


def inherits(owner: Announcement | None, facts: StartFacts, *, is_own: bool = False, **rest: Any) -> Announcement:
    """Keep the place of the start before, on a copy too."""
    made = _first(owner, facts, is_own=is_own, **rest)
    if owner is None or not is_own or facts.job != owner.facts.job:
        return made
    return replace(made, facts=replace(made.facts, place=owner.facts.place))


def furthest(world: World, jobs: tuple[StartFacts, ...], own: Checkpoint) -> HandOver | None:
    """Go on where the furthest bucket is."""
    ending = _hand_over(world, jobs, own)
    return ending if ending is None or ending.end is None else HandOver(ending.buckets, ending.end)


def nearest(world: World, jobs: tuple[StartFacts, ...], own: Checkpoint) -> HandOver | None:
    """Go on where the last bucket is, for all buckets."""
    ending = _hand_over(world, jobs, own)
    return ending if ending is None else HandOver(ending.buckets, ending.base)


class BeforeTheFence:
    """The place that was read before the owner was fenced."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str, str], HandOver | None] = {}

    def __call__(self, world: World, jobs: tuple[StartFacts, ...], own: Checkpoint) -> HandOver | None:
        """Return what was read at the first question of each start."""
        key = id(world), own.name, world.running.id
        if key not in self._found:
            self._found[key] = _hand_over(world, jobs, own)
        return self._found[key]


def unconfirmed_as_it_is(first: Announcement, _before: Announcement) -> Announcement:
    """Believe what a start announced that never looked again."""
    return first


def in_a_take_over(owner: Announcement, own: Any, prefix: Any, *, replace_job: bool) -> Any:
    """Take a copy for whole that was made while the checkpoint was given to a new job."""
    if owner.pending or own.job == owner.facts.job:
        return _of_own_job(owner, own, prefix, replace_job=replace_job)
    return one_start.Verdict()


@dataclass(frozen=True)
class Mutant:
    """``wrong``: (where, name, what is put there). ``seed``: of a run that catches it."""

    wrong: tuple[tuple[Any, str, Any], ...]
    seed: int = 0


def mutant(*wrong: tuple[Any, str, Any], seed: int = 0) -> Mutant:
    """Return a mutant."""
    return Mutant(wrong, seed)


MUTANTS = {
    "no look": mutant((transaction, "refuse_another", nothing)),
    "no second look": mutant((transaction, "Transaction", OneLook), seed=20),
    "fenced before the announcement": mutant(
        (Start, "_announce", fence_and_announce), (Start, "fence", nothing), seed=10
    ),
    "no fence of all buckets": mutant((Start, "fence", nothing), seed=3),
    "fence of fewer buckets": mutant((announcements, "first_announcement", own_buckets), seed=39),
    "own announcement not read again": mutant((announcements, "refuse_another", nothing), seed=530),
    "newest record owns": mutant((announcements, "owner_after", newest), seed=2),
    "refusal not sticky": mutant((one_start, "_delivered_since", lambda *_: "")),
    "batch numbers instead of starts": mutant((one_start, "_delivered_since", by_numbers), seed=275),
    "starts instead of batch numbers": mutant((one_start, "_delivered_since", by_starts_alone), seed=1409),
    "a copy taken for the same checkpoint": mutant((one_start, "judge", takes_a_copy_for_the_same), seed=592),
    "a copy of a take-over taken for whole": mutant((one_start, "_of_own_job", in_a_take_over), seed=113),
    "a copy keeps the place": mutant((announcements, "first_announcement", inherits), seed=275),
    "owner of the first look": mutant((World, "before", nothing), seed=66),
    "owner that never looked again": mutant((announcements, "_behind", unconfirmed_as_it_is), seed=1133),
    "hand-over from the furthest bucket": mutant((starts_model, "hand_over", furthest)),
    "hand-over without marks": mutant((starts_model, "hand_over", nearest)),
    "hand-over read before the fence": mutant((starts_model, "hand_over", BeforeTheFence()), seed=8),
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
    """Return what a consumer sees wrong in a run; "" if nothing."""
    with ExitStack() as wrong:
        for where, name, what in tried.wrong:
            wrong.enter_context(patch.object(where, name, what))
        try:
            World(seed).run()
        except Violation as violation:
            return violation.kind
    return ""
