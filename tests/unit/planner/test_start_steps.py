"""Tests of the order of the steps by which a start comes to own its topic.prefix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from incsnap.checkpoint.own_starts import OwnCheckpoint
from incsnap.kafka.announcements import Announcement, PrefixTaken, StartFacts, first_announcement
from incsnap.planner.one_start import PrefixState
from incsnap.planner.start_steps import own_the_prefix

OWNER = Announcement(StartFacts("s1", "job-a", "/a", "host /a 1", "host"), confirmed=True, buckets=4)
NEW = OwnCheckpoint("/b", "host /b 2", ())
FACTS = StartFacts("s2", checkpoint="/b", lock="host /b 2")


class CannotGoOn(Exception):
    """An error: the server cannot send what follows the place."""


@dataclass
class Port:
    """A prefix whose owner has ended, and a record of the steps that a start does."""

    owner: Announcement | None = OWNER
    #: The newest batch that each job has delivered, before the fence and after it; None for none.
    delivered: tuple[int | None, int | None] = (7, 7)
    #: Where the owner has ended. "purged": the server cannot send from there. None: this checkpoint just goes on.
    place: str | None = "a place"
    #: Another start that announces at the same moment, and whose announcement comes first; None for no other start.
    rival: Announcement | None = None
    steps: list[str] = field(default_factory=list)
    announced: list[Announcement] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  #: ids of the starts that the checkpoint keeps

    def current_owner(self) -> Announcement | None:
        self.steps.append("ask for the owner")
        if self.announced:
            return self.rival or self.announced[-1]
        return self.owner

    def owner_before(self) -> Announcement | None:
        return self.owner

    def earlier_buckets(self) -> int:
        return 2

    def state(self, buckets: int, *, fenced: bool) -> PrefixState:
        self.steps.append("judge behind the fence" if fenced else "judge")
        return State(self.delivered[fenced])

    def keep_start(self, start: str, before: Sequence[str]) -> None:
        self.steps.append("keep the start")
        self.kept = [start, *before]

    def announce(self, what: Announcement) -> None:
        self.steps.append("confirm" if what.confirmed else "announce")
        self.announced.append(what)

    def fence(self, buckets: int) -> None:
        self.steps.append(f"fence {buckets}")

    def hand_over(self, jobs: Sequence[StartFacts], buckets: int) -> str | None:
        self.steps.append("find the place")
        if self.place == "purged":
            raise CannotGoOn
        return self.place

    def take_over(self, place: str) -> None:
        self.steps.append("take over")


@dataclass
class State:
    """Kafka's answers about the jobs: no owner is alive, and each job has delivered the batch `sent`."""

    sent: int | None

    def is_alive(self, owner: Announcement, *, wait: bool) -> bool:
        return False

    def delivered(self, job: StartFacts) -> int | None:
        return self.sent

    def has_records(self) -> bool:
        return False


def test_a_start_announces_before_it_fences_and_takes_over_behind_the_fence() -> None:
    port = Port()
    own_the_prefix(port, NEW, FACTS, replace_job=True)
    assert port.steps == [
        *("ask for the owner", "judge", "find the place", "keep the start", "announce", "ask for the owner", "confirm"),
        *("fence 4", "judge behind the fence", "find the place", "take over"),
    ]
    assert [(each.term, each.pending, each.confirmed) for each in port.announced] == [(2, True, False), (2, True, True)]


def test_a_checkpoint_keeps_the_starts_whose_announcements_may_still_come() -> None:
    port = Port()
    own = OwnCheckpoint("/a", "host /a 1", ("s3", "s1", *(f"older-{number}" for number in range(20))), "job-a", 7)
    own_the_prefix(port, own, replace(FACTS, start="s4"), replace_job=False)
    assert port.kept[:4] == ["s4", "s1", "s3", "older-0"]
    assert len(port.kept) == 17


def test_a_take_over_that_is_impossible_disturbs_nobody() -> None:
    port = Port(place="purged")
    with pytest.raises(CannotGoOn):
        own_the_prefix(port, NEW, FACTS, replace_job=True)
    assert port.steps == ["ask for the owner", "judge", "find the place"]


def test_of_two_starts_that_announce_at_once_the_second_fences_nobody() -> None:
    rival = first_announcement(OWNER, StartFacts("s3", checkpoint="/c"), buckets=4)
    port = Port(rival=rival)
    with pytest.raises(PrefixTaken, match="/c"):
        own_the_prefix(port, NEW, FACTS, replace_job=False)
    assert port.steps == ["ask for the owner", "judge", "keep the start", "announce", "ask for the owner"]


def test_a_take_over_that_the_fence_shows_to_be_needed_is_announced_first() -> None:
    port = Port(delivered=(None, 1))
    own_the_prefix(port, NEW, FACTS, replace_job=True)
    assert port.steps[-4:] == ["judge behind the fence", "find the place", "confirm", "take over"]
    assert [each.pending for each in port.announced] == [False, False, True]
    assert port.announced[-1].facts.replaces


def test_buckets_of_an_older_release_are_fenced() -> None:
    port = Port(owner=None)
    own_the_prefix(port, NEW, FACTS, replace_job=False)
    assert "fence 2" in port.steps
    assert not port.announced[-1].pending


def test_a_checkpoint_that_has_all_of_its_job_goes_on() -> None:
    port = Port(owner=replace(OWNER, pending=True), place=None)
    own_the_prefix(port, NEW, FACTS, replace_job=True)
    assert "take over" not in port.steps
