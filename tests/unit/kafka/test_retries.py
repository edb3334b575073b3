"""Tests of the retries of one step of a transaction."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from confluent_kafka import KafkaError

from incsnap.kafka import retries
from incsnap.kafka.refusals import ClientError
from incsnap.kafka.retries import with_retries


class Clock:
    """A clock that stands still between the calls of the step and the pauses."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class SlowStep:
    """A step that uses all of its time, and ends after `calls` calls."""

    def __init__(self, clock: Clock, calls: int) -> None:
        self._clock, self._left = clock, calls

    def __call__(self, seconds: float) -> str:
        self._clock.now += seconds
        self._left -= 1
        if self._left <= 0:
            return "done"
        raise ClientError(KafkaError._TIMED_OUT, "timed out", retriable=True)


def took(clock: Clock, calls: int, waiting: Iterable[int]) -> float:
    """Return the seconds of a step that waits for so many records at each question."""
    numbers = itertools.pairwise(waiting)

    def goes_on() -> float:
        before, now = next(numbers)
        return 30.0 if now < before else 0.0

    assert with_retries("committing", SlowStep(clock, calls), 30.0, goes_on) == "done"
    return clock.now


def test_a_step_has_more_time_while_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(retries, "time", clock)

    assert 60 < took(clock, 5, (9, 5, 2)) < 95
    with pytest.raises(ClientError, match="timed out"):
        took(clock, 9, (9, 5, 5))
    with pytest.raises(ClientError, match="timed out"):
        with_retries("committing", SlowStep(clock, 3), 30.0)
