"""Tests of maximum keys that are searched for beside the stream: an answer may come late, but never too early.

The engine and `BoundarySearch` are the product's code. The steps of the search's threads are called one by one.
"""

from __future__ import annotations

import random
from unittest.mock import patch

import pytest
from hypothesis import given

from incsnap.config.servers import MySqlSettings
from incsnap.envelope.column_rules import ColumnRules
from incsnap.errors import ServerUnreachable
from incsnap.events import SchemaChange
from incsnap.gtid import GtidSet
from incsnap.planner.boundary_search import BoundarySearch
from incsnap.snapshot import planning
from incsnap.snapshot.commands import Command, Stop
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.engine import BatchFacts, drive, next_context
from incsnap.snapshot.questions import Answer, Describe, KeyOrder, LookAhead, MaximumKey, Opened, Question
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import ChunkResult
from lab.addresses import MySqlAddress
from tests.property.hypothesis_random import RANDOMS
from tests.support.planned_job import settings_of
from tests.support.snapshots import SERVER, A, alter, execute, position

BATCHES = 30
MYSQL: MySqlSettings = settings_of(MySqlAddress("h", 1), "k:1", "p", "d").mysql


class TooEarlyError(AssertionError):
    """An error: a table's end was read before its snapshot began, so that rows after this end would be missing."""


class Play:
    """A table to which keys are only added. Each commit adds one: key n comes with transaction n."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_
        #: Number of commits in the binlog, of those that a SELECT sees, and of those that the stream has delivered.
        self.committed = self.visible = self.delivered = 9
        self.context = SnapshotContext()
        self.batch = 0
        #: Scan -> what was delivered before the batch that began it.
        self.delivered_before: dict[int, int] = {}
        self.fingerprint = 0
        self.maxima = 0
        self.new_search()

    def new_search(self) -> None:
        self.search = BoundarySearch(MYSQL, ColumnRules(), lambda: None)
        # No threads: `look` does one step of a thread.
        self.search._begin_thread = lambda **_: None  # type: ignore[method-assign]

    def look(self) -> None:
        """Answer one question beside the stream."""
        asked = self.search._next(sorts=False) if self.search._asked or self.search._ahead else None
        if asked is None:
            return
        question, server = asked
        self.wait(question)
        self.search._answered(question, self.truth(question), server)

    def wait(self, question: Question) -> None:
        """Make the transactions of the question's low watermark visible."""
        if isinstance(question, (Describe, MaximumKey)):
            self.visible = max(self.visible, int(str(question.low_watermark).rpartition("-")[2]))

    def truth(self, question: Question) -> Answer:
        if isinstance(question, Describe):
            return KeyOrder(("k",), str(self.fingerprint))
        if isinstance(question, MaximumKey):
            return (str(self.visible),)
        return None

    def answer(self, question: Question) -> Answer:
        if isinstance(question, LookAhead):
            return None
        if self.random.random() < 0.05:
            raise ServerUnreachable("by chance")
        beside = self.search.is_asked(question) or isinstance(question, Opened)
        if beside or self.random.random() < 0.7:
            return self.search(question)
        self.wait(question)
        return self.truth(question)

    def step(self) -> None:
        self.committed += self.random.randint(0, 2)
        self.visible = self.random.randint(self.visible, self.committed)
        before = self.delivered
        self.delivered = self.random.randint(self.delivered, self.committed)
        self.visible = max(self.visible, before)
        commands: list[Command] = []
        if self.random.random() < 0.1:
            commands.append(Stop("stop"))
        if self.random.random() < 0.3:
            commands.append(execute(f"s{self.batch}-{self.random.randint(0, 99)}", A))
        changes: tuple[SchemaChange, ...] = ()
        if self.random.random() < 0.1:
            self.fingerprint += self.random.randint(0, 1)
            changes = (alter(A),)
        facts = BatchFacts(
            batch=self.batch + 1,
            end=position(100 * self.batch + 100),
            server_uuid=SERVER,
            now_ms=(self.batch + 1) * 60_000,
            results={window.id: ChunkResult(1, 1, 0.1, "binlog.000001", 1, SERVER) for window in self.context.unread},
            commands=tuple(commands),
            changes=changes,
            limits=Limits(8, 8, 4, 4),
        )
        with patch.object(planning, "MAX_SCANS", 4), patch("incsnap.snapshot.engine.low_watermark_of") as low_watermark:
            low_watermark.return_value = GtidSet.parse(f"{SERVER}:1-{self.delivered}")
            try:
                plan = drive(next_context(self.context, facts), self.answer)
            except ServerUnreachable:
                # The batch is planned again, with everything that has come since.
                self.delivered = before
                return
        known = {scan.number: scan.maximum for scan in self.context.scans if scan.fingerprint == str(self.fingerprint)}
        for scan in plan.context.scans:
            self.delivered_before.setdefault(scan.number, before)
            if scan.maximum is not None and known.get(scan.number) is None:
                self.maxima += 1
                if int(scan.maximum[0] or 0) < self.delivered_before[scan.number]:
                    raise TooEarlyError(f"{scan.maximum} of scan {scan.number}, {self.delivered_before}")
        self.context, self.batch = plan.context.settled(), self.batch + 1

    def live(self) -> None:
        for _ in range(BATCHES):
            for _ in range(self.random.randint(0, 3)):
                self.look()
            self.step()
            if self.random.random() < 0.03:
                self.search.begin_again()
            if self.random.random() < 0.03:
                self.new_search()


@given(RANDOMS)
def test_a_table_ends_at_a_key_that_was_read_when_its_snapshot_had_begun(random_: random.Random) -> None:
    Play(random_).live()


def test_without_numbers_of_questions_a_late_answer_is_taken_for_a_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_asked", lambda _state, _number: 1)

    def is_caught(seed: int) -> bool:
        try:
            Play(random.Random(seed)).live()
        except TooEarlyError:
            return True
        return False

    # One run in four finds the error.
    assert any(map(is_caught, range(40)))


def test_runs_learn_where_tables_end() -> None:
    play = Play(random.Random(1))
    play.live()

    assert play.maxima > 2
