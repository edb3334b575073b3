"""Tests of the cache of producers that are kept for a later batch."""

from __future__ import annotations

from typing import Any, cast

import pytest

from incsnap.kafka.producer_cache import MOST, ProducerCache


class Producer:
    closed = False

    def close(self) -> None:
        self.closed = True


def keep(producers: ProducerCache, owner: str, batch: int) -> Producer:
    made = Producer()
    producers.keep(owner, cast(Any, made), batch)
    return made


def test_a_producer_is_given_once_and_only_to_its_owner() -> None:
    producers = ProducerCache()
    made = keep(producers, "a", 3)

    assert producers.take("b", before=9) is None
    kept = producers.take("a", before=9)
    assert kept is not None
    assert kept.producer is cast(Any, made)
    assert kept.batch == 3
    assert producers.take("a", before=9) is None
    assert not made.closed


@pytest.mark.parametrize("asked", [2, 3])
def test_a_producer_that_has_committed_the_batch_or_a_later_one_is_closed(asked: int) -> None:
    producers = ProducerCache()
    made = keep(producers, "a", 3)

    assert producers.take("a", before=asked) is None
    assert made.closed


def test_only_the_newest_are_kept() -> None:
    producers = ProducerCache()
    made = [keep(producers, f"bucket {number}", 1) for number in range(MOST + 2)]

    assert [each.closed for each in made] == [True, True, *[False] * MOST]
    producers.close()
    assert all(each.closed for each in made)


def test_a_producer_that_was_not_asked_for_in_a_long_time_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("incsnap.kafka.producer_cache.time.monotonic", lambda: now)
    producers = ProducerCache()
    old, other = keep(producers, "a", 1), keep(producers, "b", 1)
    now += 301
    assert producers.take("a", before=2) is None
    assert old.closed
    keep(producers, "c", 1)
    assert other.closed
