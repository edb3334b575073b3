"""Tests of the proof that a live job reads a signal, in a world whose jobs begin, pause, freeze, die and are replaced.

A channel may be named only if a job that obeys the signal has written a beat after the look began, and owns the prefix.
Each mutant leaves one rule out, and then a signal goes to somebody who does not obey it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from incsnap.kafka.announcements import BEAT_SECONDS, Announcement, StartFacts, first_announcement, owner_after
from incsnap.verify import live_job
from incsnap.verify.live_job import ExpectedJob, LiveJob, NoLiveJob
from signals.chosen import FIELDS
from tests.property.hypothesis_random import RANDOMS

_RUNS = settings.get_profile(settings.get_current_profile_name()).max_examples
_MUTANT_RUNS = 3_000
CHANNELS = {"kafka": "signals at broker", "source": "shop.signals"}
EXPECTED = ExpectedJob("shop", "/checkpoint", CHANNELS, host="here")


@dataclass
class Start:
    """A start of a job."""

    announced: Announcement  #: its newest announcement
    clock: float  #: seconds by which its clock is ahead
    next_beat: float  #: time of its next beat
    is_alive: bool = True
    is_frozen: bool = False
    beats: list[tuple[float, Announcement]] = field(default_factory=list)  #: its beats, each with its time

    @property
    def obeys(self) -> bool:
        """Whether the job would obey a signal by its newest announcement."""
        facts = self.announced.facts
        signals, paused = facts.signals or {}, (facts.snapshots or {}).get("paused")
        is_own = (
            facts.checkpoint == "/checkpoint" and facts.job and self.announced.confirmed and not self.announced.pending
        )
        return bool(is_own and not paused and set(FIELDS) <= set(signals.get("fields", ())))


class World:
    """The jobs of a prefix and the control topic."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.now = rng, 1_000.0
        self.log: list[Announcement] = []
        self.starts: list[Start] = []
        for _ in range(rng.randint(0, 2)):
            self._begin()
            self.rest(rng.choice([0.0, 5.0, 60.0]))

    @property
    def owner(self) -> Announcement | None:
        """The owner of the prefix."""
        return owner_after(None, self.log)

    def rest(self, seconds: float) -> None:
        """Let `seconds` pass."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.5)
            if self.rng.random() < 0.06:
                self._change()
            for start in self.starts:
                if start.is_alive and not start.is_frozen and start.next_beat <= self.now:
                    self._beat(start)

    def _begin(self) -> None:
        rng, number = self.rng, len(self.starts)
        kind = rng.choice(["own", "own", "own", "older release", "few fields", "other checkpoint", "other channels"])
        facts = StartFacts(
            f"start-{number}",
            rng.choice(["job", "job", ""]),
            "/other" if kind == "other checkpoint" else "/checkpoint",
            host=rng.choice(["here", "there"]),
        )
        if kind != "older release":
            places = {"kafka": "other at broker"} if kind == "other channels" else dict(CHANNELS)
            known = {"fields": list(FIELDS[:1] if kind == "few fields" else FIELDS), "channels": places}
            facts = replace(facts, release="1", signals=known, snapshots={"paused": rng.choice(["", "", "p"])})
        announced = replace(first_announcement(self.owner, facts, buckets=1), confirmed=rng.random() < 0.8)
        self.starts.append(Start(announced, rng.choice([-60.0, 0.0, 60.0]), self.now))

    def _beat(self, start: Start) -> None:
        owner = self.owner
        if start.beats and owner is not None and owner.facts.start != start.announced.facts.start:
            start.is_alive = False  # it sees that it was replaced
            return
        start.announced = replace(
            start.announced, facts=replace(start.announced.facts, beat_ms=round((self.now + start.clock) * 1000))
        )
        start.beats.append((self.now, start.announced))
        start.next_beat = self.now + BEAT_SECONDS + self.rng.random()
        self.log.append(start.announced)

    def _change(self) -> None:
        what = self.rng.choice(["begin", "kill", "freeze", "thaw", "end", "pause", "resume"])
        if what == "begin":
            self._begin()
            return
        for start in self.starts[-1:]:
            if what == "kill":
                start.is_alive = False
            elif what in ("freeze", "thaw"):
                start.is_frozen = what == "freeze"
            elif start.is_alive and not start.is_frozen and start.announced.facts.signals is not None:
                changed = (
                    {"ended": True} if what == "end" else {"snapshots": {"paused": "p" if what == "pause" else ""}}
                )
                start.announced = replace(start.announced, facts=replace(start.announced.facts, **changed))
                self._beat(start)
                start.is_alive = start.is_alive and what != "end"


def look_for_a_job(rng: random.Random) -> str:
    """Look for a live job in a world. Return what is wrong with the answer, or "" if it is right."""
    world = World(rng)
    began = world.now
    try:
        job: LiveJob | None = live_job.live_job(
            lambda: world.owner, EXPECTED, clock=lambda: world.now, wall=lambda: world.now, sleep=world.rest
        )
    except NoLiveJob:
        job = None
    owner = world.owner
    if job is None:
        return ""
    if owner is None or owner.facts != job.facts:
        return "somebody else owns the prefix"
    start = next(each for each in world.starts if each.announced.facts.start == owner.facts.start)
    if not any(when >= began for when, _ in start.beats):
        return "the job is not proved to live"
    if not start.obeys or owner.facts.ended:
        return "the job does not obey"
    return "" if CHANNELS[job.channel] == job.place else "the signal goes to another place"


@given(rng=RANDOMS)
def test_a_channel_is_named_only_for_a_job_that_lives_and_obeys(rng: random.Random) -> None:
    assert look_for_a_job(rng) == ""


def test_random_worlds_hold() -> None:
    for seed in range(20 * _RUNS):
        assert look_for_a_job(random.Random(seed)) == "", seed


@pytest.mark.parametrize("skew", [-3600.0, 0.0, 3600.0])
def test_a_job_that_goes_on_beating_is_found_whatever_its_clock_says(skew: float) -> None:
    world = World(random.Random(1))
    signals = {"fields": list(FIELDS), "channels": CHANNELS}
    facts = StartFacts("s", "job", "/checkpoint", release="1", signals=signals, snapshots={"paused": ""})
    start = Start(Announcement(facts, term=99, confirmed=True), skew, world.now)
    world.starts = [start]

    def rest(seconds: float) -> None:
        world.now += seconds
        if start.next_beat <= world.now:
            world._beat(start)

    rest(10.0)
    job = live_job.live_job(lambda: world.owner, EXPECTED, clock=lambda: world.now, wall=lambda: world.now, sleep=rest)
    assert (job.channel, job.facts.start) == ("kafka", "s")


def _first_channel(owner: Announcement, expected: ExpectedJob) -> str:
    with patch.object(live_job, "_BY_PREFERENCE", ("kafka",)):
        channels = (owner.facts.signals or {}).get("channels", {})
        return _CHANNEL(owner, replace(expected, channels=channels))


def _of_any_checkpoint(owner: Announcement, expected: ExpectedJob) -> str:
    return _CHANNEL(owner, replace(expected, checkpoint=owner.facts.checkpoint))


_CHANNEL: Callable[[Announcement, ExpectedJob], str] = live_job._channel
MUTANTS: dict[str, tuple[Any, ...]] = {
    "a young beat proves life": ("_is_newer", lambda owner, first: True),
    "fields need not be known": ("NEEDED_FIELDS", ()),
    "a pause does not matter": ("paused_by", lambda facts: ""),
    "places of channels are not compared": ("_channel", _first_channel),
    "any checkpoint will do": ("_channel", _of_any_checkpoint),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_without_this_rule_a_signal_goes_astray(name: str) -> None:
    with patch.object(live_job, *MUTANTS[name]):
        wrong = next((job for seed in range(_MUTANT_RUNS) if (job := look_for_a_job(random.Random(seed)))), "")
    assert wrong in ("the job is not proved to live", "the job does not obey", "the signal goes to another place")
