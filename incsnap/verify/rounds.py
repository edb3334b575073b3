"""The rounds of `incsnap verify`: keys that a round proves nothing about are read again, alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from incsnap.verify.proof import (
    Events,
    Judgement,
    LastRecord,
    Low,
    Reached,
    RowPlace,
    Sides,
    TopicKey,
    Verdict,
    is_same,
    judge,
)
from incsnap.verify.proof import observe as observe_sides

#: Why nothing can be proved about a key.
CHANGES = "it changes all the time"
BEHIND = "nothing shows that the topic has its last change"
#: Seconds between two rounds that wait for the topic.
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of reading again."""

    wait_seconds: float = 30.0  #: for the topic to catch up
    again_seconds: float = 5.0  #: until a difference that rests on weak evidence is looked at again
    changed_rounds: int = 12  #: rounds in which a key may have changed, before it counts as unverifiable


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of all rounds for a key."""

    row: bytes | None  #: the table's row; None: there is none
    record: LastRecord | None  #: the last record of the key; None: there is none
    low: Low  #: low watermark of the round that decided
    judgement: Judgement  #: of that round
    unproved: str = ""  #: why nothing is proved; "" if the judgement is one
    last_event: RowPlace | None = None  #: place of the key's last event that the round has read; None: none

    def event_before(self, last: RowPlace | None) -> RowPlace | None:
        """Return the place of the key's last event before the round that decided; None if it is not known.

        `last`: place of the key's last event, read from the binlog after all rounds. The key may have changed again by
        then, and such a change says nothing about the record that the round has seen.
        """
        return self.last_event if last is None or last >= self.low.end else last


class TopicEnds(Protocol):
    """The topic as a round has read it."""

    def record(self, key: TopicKey) -> LastRecord | None:
        """Return the last record of the key."""

    def reached(self, key: TopicKey) -> Reached:
        """Return how far the partition of the key came."""


class KeySides(Sides[Collection[TopicKey], Mapping[TopicKey, bytes], TopicEnds], Protocol):
    """The two sides, asked about keys."""

    def events(self, low: Low, since: RowPlace, high: RowPlace, keys: Collection[TopicKey]) -> Events:
        """Return the changes of `keys` up to `high`: all that are not of `low`, and those of `low` from `since` on.

        The result begins later than `since` if the binlog does.
        """


def settle(
    sides: KeySides,
    keys: Collection[TopicKey],
    limits: Limits,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[TopicKey, Outcome]:
    """Return what rounds of reading prove about each of `keys`.

    Each round reads the keys that are still open.
    """
    decided: dict[TopicKey, Outcome] = {}
    changed: dict[TopicKey, int] = dict.fromkeys(keys, 0)
    #: Keys that differ by weak evidence, with the row, the offset of the record, and when that was seen first.
    weak: dict[TopicKey, tuple[bytes | None, int, float]] = {}
    begun = clock()
    while changed:
        waits = False
        for key, outcome in _round(sides, list(changed)).items():
            verdict, now = outcome.judgement.verdict, clock()
            if verdict is Verdict.DIFFERENT and outcome.judgement.weak:
                seen = (outcome.row, -1 if outcome.record is None else outcome.record.offset)
                first = weak.get(key)
                if first is None or first[:2] != seen:
                    weak[key] = first = (*seen, now)
                if now - first[2] < limits.again_seconds:
                    waits = True
                    continue
            if verdict is Verdict.CHANGED:
                changed[key] += 1
                if changed[key] < limits.changed_rounds:
                    continue
                outcome = _unproved(outcome, CHANGES)
            if verdict is Verdict.BEHIND:
                if now - begun < limits.wait_seconds:
                    waits = True
                    continue
                outcome = _unproved(outcome, BEHIND)
            decided[key] = outcome
            del changed[key]
        if waits:
            sleep(_PAUSE_SECONDS)
    return decided


def _unproved(outcome: Outcome, why: str) -> Outcome:
    return Outcome(outcome.row, outcome.record, outcome.low, outcome.judgement, why, outcome.last_event)


def _round(sides: KeySides, keys: Collection[TopicKey]) -> dict[TopicKey, Outcome]:
    """Return the outcome of one round for each key."""
    seen = observe_sides(sides, keys)
    low, since = seen.low, seen.low.end
    shown = {key: (seen.topic.record(key), seen.topic.reached(key)) for key in keys}
    for key, (record, reached) in shown.items():
        # Only a difference needs evidence from before the low watermark.
        if not is_same(seen.rows.get(key), record):
            since = min(since, *(place for place in (reached.strong, reached.weak) if place is not None), low.end)
    events = sides.events(low, since, seen.high, keys)
    outcomes = {}
    for key, (record, reached) in shown.items():
        row = seen.rows.get(key)
        judged = judge(key, row, record, low, events, reached)
        outcomes[key] = Outcome(row, record, low, judged, last_event=events.last.get(key))
    return outcomes
