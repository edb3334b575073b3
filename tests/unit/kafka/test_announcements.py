"""Tests of the rule that decides which start owns a `topic.prefix`: the order of the announcements."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from incsnap.kafka.announcements import (
    Announcement,
    OwnStart,
    PrefixTaken,
    StartFacts,
    announcement,
    first_announcement,
    owner_after,
    refuse_another,
)

OLD = Announcement(
    StartFacts("old", "job-a", "/a", host="alpha", started_ms=1_790_000_000_000), confirmed=True, buckets=3
)
LEFT = first_announcement(OLD, StartFacts("left", "", "/b"), buckets=1)
RIGHT = first_announcement(OLD, StartFacts("right", "", "/c"), buckets=1)


def confirmed(what: Announcement) -> Announcement:
    return replace(what, confirmed=True)


def test_of_two_that_announce_at_once_the_first_in_the_log_wins() -> None:
    owner = owner_after(OLD, [LEFT, RIGHT, confirmed(LEFT)])
    assert owner is not None
    assert owner.facts.start == "left"


def test_a_reader_that_begins_between_the_two_finds_the_one_that_won() -> None:
    owner = owner_after(None, [RIGHT, confirmed(LEFT)])
    assert owner is not None
    assert owner.facts.start == "left"


def test_a_beat_of_a_start_that_was_frozen_and_replaced_changes_nothing() -> None:
    owner = owner_after(confirmed(LEFT), [OLD, replace(OLD, buckets=9)])
    assert owner == confirmed(LEFT)


def test_a_beat_of_the_owner_is_taken_over() -> None:
    owner = owner_after(OLD, [replace(OLD, buckets=9)])
    assert owner is not None
    assert owner.buckets == 9


def test_a_start_knows_the_most_buckets_and_the_jobs_before() -> None:
    assert LEFT.buckets == 3
    assert [each.start for each in LEFT.jobs] == ["left", "old"]


def test_a_restart_of_the_same_job_keeps_its_place_and_names_it_once() -> None:
    before = replace(OLD, facts=replace(OLD.facts, place={"batch": 7}, replaces=True, lock="alpha /a 1"))
    again = first_announcement(before, StartFacts("new", "job-a", "/a", "alpha /a 1"), buckets=1, is_own=True)
    copy = first_announcement(before, StartFacts("new", "job-a", "/b", "alpha /b 2"), buckets=1, is_own=True)
    assert copy.facts.place is None
    assert again.facts.place == {"batch": 7}
    assert again.facts.replaces
    assert again.earlier == ()


def test_a_start_whose_job_begins_again_names_the_job_before() -> None:
    again = replace(OLD, facts=replace(OLD.facts, place={"batch": 7})).with_job("job-b")
    assert [(each.job, each.place) for each in again.jobs] == [("job-b", None), ("job-a", {"batch": 7})]


def test_a_record_says_what_was_announced_and_what_a_newer_release_adds_is_left_out() -> None:
    key, value = LEFT.record()
    assert announcement(key, value) == LEFT
    assert announcement(key, value.replace(b'"pending"', b'"later":1,"pending"')) == LEFT
    assert announcement(b"job-a", value) is None
    assert announcement(key, None) is None


def test_a_start_that_is_not_the_owner_is_refused_by_the_name_of_the_owner() -> None:
    refuse_another(OLD, OwnStart("old", 1))
    refuse_another(None, OwnStart("old", 1))
    refuse_another(OLD, OwnStart("new", 2))
    with pytest.raises(PrefixTaken, match=r"alpha .*checkpoint /a, started 2026-09-21 .* UTC"):
        refuse_another(OLD, OwnStart("new", 1))


def test_a_start_is_alive_while_its_beat_is_young_and_it_has_not_ended() -> None:
    young = replace(OLD.facts, beat_ms=round(time.time() * 1000))
    assert young.is_young
    assert not replace(young, ended=True).is_young
    assert not replace(young, beat_ms=young.beat_ms - 21_000).is_young
    assert replace(young, beat_ms=young.beat_ms + 15_000).is_young
    assert not replace(young, beat_ms=young.beat_ms + 7_200_000).is_young, "one of the clocks is wrong"


def test_a_start_that_died_unconfirmed_hides_no_job_of_the_owner_before_it() -> None:
    looked = replace(OLD, facts=replace(OLD.facts, job=""), pending=True)
    died = first_announcement(looked, StartFacts("died", "", "/b"), buckets=1)
    owner = owner_after(looked, [replace(OLD, buckets=9), died])
    assert owner is not None
    assert [each.job for each in owner.earlier] == ["job-a"]
    assert owner.buckets == 9
