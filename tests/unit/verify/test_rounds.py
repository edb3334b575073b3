"""Tests of the rounds of `incsnap verify`: which keys are read again, how often, and what is said at the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import pytest

from incsnap.gtid import GtidSet
from incsnap.verify.proof import Events, LastRecord, Low, Reached, RowPlace, TopicKey, Verdict
from incsnap.verify.rounds import BEHIND, CHANGES, Limits, Outcome, settle

_LOW = Low(GtidSet(), RowPlace(1, 100))
_A, _B = ("t", b"a"), ("t", b"b")
_OLD, _NEW = b"old", b"new"


@dataclass
class Play:
    """Two sides and a clock. Each function gets the number of the round, from 0 on, and a key."""

    row: Callable[[int, TopicKey], bytes | None] = lambda number, key: _NEW
    record: Callable[[int, TopicKey], bytes | None] = lambda number, key: _NEW
    changes: Callable[[int, TopicKey], bool] = lambda number, key: False
    reached: Callable[[int, TopicKey], Reached] = lambda number, key: Reached(_LOW.end)
    now: float = 0.0
    rounds: list[list[TopicKey]] = field(default_factory=list)  #: the keys of each round

    def low(self) -> Low:
        return _LOW

    def select(self, keys: Collection[TopicKey]) -> Mapping[TopicKey, bytes]:
        self.rounds.append(list(keys))
        return {key: row for key in keys if (row := self.row(self._number, key)) is not None}

    def topic(self, keys: Collection[TopicKey]) -> TopicOfRound:
        return TopicOfRound(self, self._number)

    def high(self) -> RowPlace:
        return _LOW.end

    def events(self, low: Low, since: RowPlace, high: RowPlace, keys: Collection[TopicKey]) -> Events:
        return Events(since, changed={key for key in keys if self.changes(self._number, key)})

    def settled(self, *keys: TopicKey, limits: Limits | None = None) -> dict[TopicKey, Outcome]:
        """Return what the rounds prove about `keys`."""
        return settle(self, keys, limits or Limits(), clock=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def _number(self) -> int:
        return len(self.rounds) - 1


@dataclass
class TopicOfRound:
    """The topic in a round."""

    play: Play
    number: int

    def record(self, key: TopicKey) -> LastRecord | None:
        row = self.play.record(self.number, key)
        return None if row is None else LastRecord(row, 0, 7)

    def reached(self, key: TopicKey) -> Reached:
        return self.play.reached(self.number, key)


def test_a_key_that_changes_in_each_round_is_unverifiable_behind_the_last_one_allowed() -> None:
    play = Play(changes=lambda number, key: key == _A)

    outcomes = play.settled(_A, _B, limits=Limits(changed_rounds=3))

    assert (outcomes[_A].judgement.verdict, outcomes[_A].unproved) == (Verdict.CHANGED, CHANGES)
    assert (outcomes[_B].judgement.verdict, outcomes[_B].unproved) == (Verdict.EQUAL, "")
    # Nobody waits for a key that changes, and a key with an answer is not read again.
    assert (play.rounds, play.now) == ([[_A, _B], [_A], [_A]], 0.0)


@pytest.mark.parametrize(("record", "verdict"), [(_NEW, Verdict.EQUAL), (_OLD, Verdict.DIFFERENT)])
def test_a_key_that_stops_changing_in_the_last_round_gets_an_answer(record: bytes, verdict: Verdict) -> None:
    play = Play(changes=lambda number, key: number < 2, record=lambda number, key: record)

    outcome = play.settled(_A, limits=Limits(changed_rounds=3))[_A]

    assert (outcome.judgement.verdict, outcome.unproved) == (verdict, "")
    assert len(play.rounds) == 3


def test_a_topic_that_is_late_is_waited_for_until_the_time_is_over() -> None:
    play = Play(record=lambda number, key: _OLD, reached=lambda number, key: Reached())

    outcome = play.settled(_A, limits=Limits(wait_seconds=3.0))[_A]

    assert (outcome.judgement.verdict, outcome.unproved, play.now) == (Verdict.BEHIND, BEHIND, 3.0)

    late = Play(
        record=lambda number, key: _NEW if number > 3 else _OLD,
        reached=lambda number, key: Reached(_LOW.end if number > 3 else None),
    )
    assert late.settled(_A, limits=Limits(wait_seconds=3.0))[_A].judgement.verdict is Verdict.EQUAL
    assert late.now == 2.0


def test_a_difference_by_weak_evidence_is_looked_at_again_until_it_has_lasted() -> None:
    play = Play(record=lambda number, key: _OLD, reached=lambda number, key: Reached(None, _LOW.end))

    outcome = play.settled(_A, limits=Limits(again_seconds=5.0))[_A]

    assert (outcome.judgement.verdict, outcome.judgement.weak, outcome.unproved) == (Verdict.DIFFERENT, True, "")
    assert play.now == 5.0


def test_another_row_or_record_begins_the_time_of_a_weak_difference_anew() -> None:
    def row(number: int, key: TopicKey) -> bytes:
        return b"earlier" if key == _A and number < 4 else _NEW

    play = Play(row=row, record=lambda number, key: _OLD, reached=lambda number, key: Reached(None, _LOW.end))
    outcomes = play.settled(_A, _B, limits=Limits(again_seconds=5.0))

    assert {outcome.judgement.verdict for outcome in outcomes.values()} == {Verdict.DIFFERENT}
    # The row of `a` was another one for 2 s.
    assert play.now == 7.0
    assert play.rounds[10] == [_A, _B]
    assert play.rounds[11] == [_A]


def test_a_record_that_comes_late_ends_a_weak_difference() -> None:
    play = Play(
        record=lambda number, key: _OLD if number < 4 else _NEW,
        reached=lambda number, key: Reached(None, _LOW.end),
    )
    assert play.settled(_A)[_A].judgement.verdict is Verdict.EQUAL
    assert play.now == 2.0
