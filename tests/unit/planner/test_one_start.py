"""Tests of the rule that decides whether a start may have its topic.prefix."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from incsnap.checkpoint.own_starts import OwnCheckpoint
from incsnap.kafka.announcements import Announcement, PrefixTaken, StartFacts
from incsnap.planner.one_start import Verdict, judge

OWNER = Announcement(StartFacts("s1", "job-a", "/a", "host /a 1", "host"), confirmed=True)
OWN = OwnCheckpoint("/a", "host /a 1", ("s1",), "job-a", 7)


@dataclass
class Prefix:
    """The answers of Kafka."""

    alive: bool = False
    sent: int | None = 7
    records: bool = False

    def is_alive(self, owner: Announcement, *, wait: bool) -> bool:
        return self.alive

    def delivered(self, job: StartFacts) -> int | None:
        return self.sent

    def has_records(self) -> bool:
        return self.records


def test_a_restart_on_its_own_checkpoint_is_allowed_right_after_the_last_beat() -> None:
    assert judge(OWNER, OWN, Prefix(alive=True), replace_job=False) == Verdict()


@pytest.mark.parametrize(
    "own",
    [
        OwnCheckpoint("/b", "host /b 2", ()),
        OwnCheckpoint("/b", "host /b 2", (), "job-b", 3),
        OwnCheckpoint("/copy", "host /copy 2", ("s1",), "job-a", 7),
        OwnCheckpoint("/copy", "host /copy 2", ("s0",), "job-a", 7),
    ],
    ids=["new", "another job", "copy", "older copy"],
)
def test_a_start_is_refused_while_another_is_alive_unless_it_replaces_it(own: OwnCheckpoint) -> None:
    with pytest.raises(PrefixTaken, match="runs with this"):
        judge(OWNER, own, Prefix(alive=True), replace_job=False)
    assert judge(OWNER, own, Prefix(alive=True), replace_job=True).takes_over


def test_a_job_that_was_replaced_stays_refused() -> None:
    owner = Announcement(StartFacts("s2", "job-b", "/b", replaces=True), 2, confirmed=True, earlier=(OWNER.facts,))
    with pytest.raises(PrefixTaken, match="has replaced the job of /a"):
        judge(owner, OWN, Prefix(sent=None), replace_job=False)
    assert judge(owner, OWN, Prefix(sent=None), replace_job=True) == Verdict(takes_over=True, replaces=True)


def test_a_job_behind_which_another_has_delivered_stays_refused() -> None:
    owner = Announcement(StartFacts("s2", "job-b", "/b"), 2, confirmed=True, earlier=(OWNER.facts,))
    with pytest.raises(PrefixTaken, match="has delivered since"):
        judge(owner, OWN, Prefix(sent=1), replace_job=False)
    assert judge(owner, OWN, Prefix(sent=None), replace_job=False) == Verdict()


def test_an_older_copy_is_refused_behind_a_job_that_has_delivered_nothing() -> None:
    class Sent(Prefix):
        def delivered(self, job: StartFacts) -> int | None:
            return 9 if job.job == "job-a" else None

    owner = Announcement(StartFacts("s2", "job-b", "/b"), 2, confirmed=True, earlier=(OWNER.facts,))
    with pytest.raises(PrefixTaken, match="older copy, at batch 7"):
        judge(owner, OWN, Sent(), replace_job=False)
    assert judge(owner, OWN, Sent(), replace_job=True) == Verdict(takes_over=True, replaces=True)
    assert judge(owner, replace(OWN, batch=9), Sent(), replace_job=False) == Verdict()


def test_a_checkpoint_is_refused_once_its_copy_has_continued() -> None:
    copy = replace(OWNER, term=2, facts=replace(OWNER.facts, start="s2", checkpoint="/copy", lock="host /copy 2"))
    with pytest.raises(PrefixTaken, match="has gone on with a copy"):
        judge(copy, replace(OWN, batch=99), Prefix(), replace_job=False)


def test_a_copy_made_while_its_checkpoint_was_given_to_a_new_job_is_refused() -> None:
    copy = OwnCheckpoint("/copy", "host /copy 2", ("s1",), "job-old", 7)
    with pytest.raises(PrefixTaken, match="has replaced the job"):
        judge(OWNER, copy, Prefix(), replace_job=False)


def test_a_copy_that_is_older_than_what_was_sent_is_refused() -> None:
    with pytest.raises(PrefixTaken, match="older copy"):
        judge(OWNER, replace(OWN, batch=6), Prefix(), replace_job=False)


def test_a_take_over_that_was_cut_short_is_done_again() -> None:
    assert judge(replace(OWNER, pending=True), OWN, Prefix(), replace_job=False).takes_over


def test_a_new_checkpoint_that_continues_a_connector_begins_without_a_warning_of_earlier_jobs() -> None:
    own = OwnCheckpoint("/b", "host /b 2", (), continues_connector=True)
    assert judge(OWNER, own, Prefix(), replace_job=False) == Verdict()
    assert judge(None, own, Prefix(records=True), replace_job=False) == Verdict()


def test_a_new_checkpoint_on_used_topics_begins_with_a_warning_or_takes_over() -> None:
    own = OwnCheckpoint("/b", "host /b 2", ())
    assert "begins anew" in judge(OWNER, own, Prefix(), replace_job=False).warning
    assert judge(OWNER, own, Prefix(), replace_job=True).takes_over
    assert judge(None, own, Prefix(records=False), replace_job=False) == Verdict()
    assert "older release" in judge(None, own, Prefix(records=True), replace_job=False).warning
    with pytest.raises(PrefixTaken, match="older release"):
        judge(None, own, Prefix(records=True), replace_job=True)
