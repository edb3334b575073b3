"""Tests of the rule for rows that nothing tells apart, against a modelled table without a key.

The engine is the product's. The model is a table whose rows are numbers, which may repeat, and a log of its changes. A
SELECT sees the table as it was at any moment between the low watermark and the SELECT's end. Whatever happens, the rows
of a window are exactly those of its range where they are sent: behind all events of the batches before.
"""

from __future__ import annotations

import random
from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from incsnap.snapshot import engine
from incsnap.snapshot.commands import DataCollection, Execute
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.engine import BatchFacts, drive, next_context
from incsnap.snapshot.keys import Key
from incsnap.snapshot.notifications import CHANGED_TOO_OFTEN, SUCCEEDED
from incsnap.snapshot.questions import Answer, Describe, KeyOrder, MaximumKey, NextBoundary, Question
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import ChunkResult, Window
from tests.property.hypothesis_random import RANDOMS
from tests.property.topic_model import Violation
from tests.support.snapshots import SERVER, A, position

_RUNS = settings.get_profile(settings.get_current_profile_name()).max_examples
_MUTANT_RUNS = 200
_Rows = Counter[int]


class Log:
    """The table after each of its changes. A change moves one row to another number, adds a row, or removes one."""

    def __init__(self, random_: random.Random) -> None:
        self._random = random_
        self.states = [Counter(random_.choices(range(6), k=random_.randint(0, 12)))]

    def change(self) -> None:
        rows = list(self.states[-1].elements())
        if rows and self._random.random() < 0.7:
            rows.remove(self._random.choice(rows))
        if not rows or self._random.random() < 0.7:
            rows.append(self._random.randrange(6))
        self.states.append(Counter(rows))


class Job:
    """A job that reads the table, and whose SELECTs may see more than the stream has brought."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_
        self.log = Log(random_)
        self.ends = [0]  #: number of changes that the stream has brought, by batch
        self.context = SnapshotContext()
        self.now_ms = 0
        self.busy = random_.choice((0.0, 0.1, 0.3))
        self.limits = Limits(2, random_.randint(2, 4), random_.randint(1, 3), random_.randint(3, 5))
        #: Window -> the rows of each of its parts.
        self.read: dict[str, list[_Rows]] = {}
        self.status = ""

    def live(self) -> None:
        self.batch(Execute("s", (DataCollection(A, surrogate="k"),)))
        for _ in range(2_000):
            if not self.context.active:
                return
            while self.random.random() < self.busy:
                self.log.change()
            self.batch()
        raise Violation("stuck", str(self.context))

    def batch(self, *commands: Execute, all_of_it: bool = False) -> None:
        results = {window.id: self._select(window) for window in self.context.unread if self.random.random() < 0.6}
        before = self.ends[-1]
        last = len(self.log.states) - 1
        end = last if all_of_it else self.random.randint(before, last)
        self.ends.append(end)
        self.now_ms += self.random.choice((100, 1_000, 40_000))
        facts = BatchFacts(
            batch=len(self.ends) - 1,
            end=position(100 * end),
            server_uuid=SERVER,
            now_ms=self.now_ms,
            results=results,
            commands=commands,
            changed=frozenset({A} if end > before else ()),
            limits=self.limits,
            release_bytes=self.random.choice((0, 1, 1 << 60)),
        )
        self.context = drive(next_context(self.context, facts), self._answer).context
        for release in self.context.released:
            parts = self.read[release.window.id]
            sent = sum(parts[release.window.sent : release.upto], Counter())
            left = sum(parts[release.upto :], Counter())
            done = sum(parts[: release.window.sent], Counter())
            now = self._rows(self.log.states[before], release.window.lower, release.window.upper)
            if done + sent + left != now:
                raise Violation(
                    "upset", f"{sent} of {parts} is sent in batch {len(self.ends) - 1}, where the rows are {now}"
                )
        for note in self.context.notifications:
            self.status = dict(note.fields).get("status", self.status)

    def _select(self, window: Window) -> ChunkResult:
        """Read a window. The SELECT sees the table at some moment, and its high watermark is the end of the log."""
        seen = self.random.randint(self.ends[window.batch], len(self.log.states) - 1)
        rows = self._rows(self.log.states[seen], window.lower, window.upper)
        count = self.random.randint(1, 3)
        parts: list[_Rows] = [Counter() for _ in range(count)]
        for place, row in enumerate(rows.elements()):
            parts[place % count][row] += 1
        self.read[window.id] = parts
        high = 100 * (len(self.log.states) - 1)
        return ChunkResult(rows.total(), 1, 0.001, "binlog.000001", high, SERVER, parts=count, record_bytes=count)

    @staticmethod
    def _rows(state: _Rows, lower: Key | None, upper: Key) -> _Rows:
        low = int(lower[0] or 0) if lower else -1
        return Counter({row: count for row, count in state.items() if low < row <= int(upper[0] or 0)})

    def _answer(self, question: Question) -> Answer:
        rows = sorted(self.log.states[self.random.randint(self.ends[-1], len(self.log.states) - 1)].elements())
        match question:
            case Describe():
                return KeyOrder(("k",), "k int", is_identified=False)
            case MaximumKey():
                return (str(rows[-1]),) if rows else None
            case NextBoundary():
                low = int(question.after[0] or 0) if question.after else -1
                left = [row for row in rows if low < row <= int(question.maximum[0] or 0)]
                return (str(left[question.rows - 1]),) if len(left) >= question.rows else None
        return None


@settings(max_examples=_RUNS)
@given(rng=RANDOMS)
def test_the_rows_of_a_window_are_those_of_the_table_where_they_are_sent(rng: random.Random) -> None:
    Job(rng).live()


@pytest.mark.parametrize("seed", range(50))
def test_a_table_that_is_quiet_at_times_is_read_to_its_end(seed: int) -> None:
    job = Job(random.Random(seed))
    job.live()

    assert job.status in (SUCCEEDED, "EMPTY") or (job.busy and job.status == CHANGED_TOO_OFTEN)


@pytest.mark.parametrize("rule", ["disturbed_by", "finished_by_events"])
def test_without_this_rule_rows_are_sent_where_they_are_not_those_of_the_table(rule: str) -> None:
    def broken(seed: int) -> bool:
        try:
            Job(random.Random(seed)).live()
        except Violation as violation:
            return violation.kind == "upset"
        return False

    with patch.object(engine, rule, lambda *_: False):
        assert any(map(broken, range(_MUTANT_RUNS)))


def test_a_table_that_is_never_quiet_is_given_up_with_a_reason() -> None:
    job = Job(random.Random(1))
    job.log.states = [Counter({1: 3, 2: 3})]
    job.batch(Execute("s", (DataCollection(A, surrogate="k"),)))
    for _ in range(1_000):
        if not job.context.active:
            break
        job.log.change()
        job.batch(all_of_it=True)

    assert job.status == CHANGED_TOO_OFTEN
