"""Tests of the answers to the engine's questions about a real table. Each waits for its low watermark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from incsnap.envelope.column_rules import ColumnRules
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.session import connect, query
from incsnap.mysql.watermarks import executed
from incsnap.planner import answers, key_search
from incsnap.planner.answers import Answers
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.questions import (
    Answer,
    BesideQuestion,
    Describe,
    Failed,
    KeyOrder,
    LookAhead,
    MaximumKey,
    NextBoundary,
    NotYet,
    Opened,
    Refused,
)
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers


@pytest.fixture
def connection(mysql_address: MySqlAddress, database: str) -> Iterator[Any]:
    with closing(connect(settings_of(mysql_address, "unused:1", "p", database).mysql)) as opened:
        query(opened, f"CREATE TABLE {database}.t (k INT PRIMARY KEY, v INT)")
        query(opened, f"INSERT INTO {database}.t VALUES (7, 1)")
        yield opened


def test_a_table_is_described_behind_its_low_watermark(connection: Any, database: str) -> None:
    table = TableId(database, "t")
    query(connection, f"ALTER TABLE {table.sql} RENAME COLUMN k TO renamed")
    described = Answers(connection, ColumnRules())(Describe(table, "", "", executed(connection)))

    assert isinstance(described, KeyOrder)
    assert described.columns == ("renamed",)


def test_a_question_is_asked_again_while_what_was_delivered_is_not_visible(connection: Any, database: str) -> None:
    table, coming = TableId(database, "t"), GtidSet.parse(f"{uuid4()}:1")
    ask = Answers(connection, ColumnRules())
    for question in (Describe(table, "", "", coming), MaximumKey(table, ("k",), "PRIMARY", coming)):
        answer = ask(question)
        assert isinstance(answer, Failed)
        assert not answer.permanent
        assert "not visible" in answer.message


def test_answers_looked_up_ahead_equal_those_asked_one_by_one(connection: Any, database: str) -> None:
    names = {
        "plain": "(k INT PRIMARY KEY)",
        "large": "(k INT PRIMARY KEY)",
        "empty": "(k INT PRIMARY KEY)",
        "text": "(k VARCHAR(9) PRIMARY KEY)",
        "binary_text": "(k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY)",
        "both": "(a INT, b DATETIME(3), PRIMARY KEY (b, a))",
        "mixed": "(k INT, l INT DEFAULT 1, PRIMARY KEY (k DESC, l))",
        "prefix": "(k VARCHAR(90), PRIMARY KEY (k(3)))",
        "promoted": "(k INT NOT NULL UNIQUE)",
        "none": "(k INT)",
    }
    for name, columns in names.items():
        query(connection, f"CREATE TABLE {database}.{name} {columns}")
        if name not in ("empty", "both"):
            query(connection, f"INSERT INTO {database}.{name} (k) VALUES (3), (12)")
    query(connection, f"INSERT INTO {database}.both VALUES (1, '2026-01-02 03:04:05.678'), (2, '2025-01-01')")
    query(connection, f"INSERT INTO {database}.large VALUES (4), (5), (6)")
    tables = [TableId(database, name) for name in (*names, "missing")]
    low_watermark = executed(connection)
    ahead = Answers(connection, ColumnRules())

    assert ahead(LookAhead(tuple(map(DataCollection, tables)), 4, low_watermark)) is None
    for table in tables:
        asked = Answers(connection, ColumnRules())
        described = asked(Describe(table, "", "", low_watermark))
        assert ahead(Describe(table, "", "", low_watermark)) == described
        if isinstance(described, KeyOrder):
            maximum = MaximumKey(table, described.columns, described.index, low_watermark, described.descending)
            answer = asked(maximum)
            assert ahead(maximum) == answer
            if isinstance(answer, tuple):
                boundary = NextBoundary(
                    table, described.columns, described.index, None, answer, 4, descending=described.descending
                )
                assert ahead(boundary) == asked(boundary)
                assert (asked(boundary) is None) == (table.table != "large")


def test_looking_ahead_saves_every_other_statement(connection: Any, database: str) -> None:
    for number in range(70):
        query(connection, f"CREATE TABLE {database}.t{number} (k INT PRIMARY KEY)")
        query(connection, f"INSERT INTO {database}.t{number} VALUES (1)")
    tables = [TableId(database, f"t{number}") for number in range(70)]
    low_watermark = executed(connection)
    ask = Answers(connection, ColumnRules())
    before = _statements(connection)
    ask(LookAhead(tuple(map(DataCollection, tables)), 1_000, low_watermark))
    for table in tables:
        assert isinstance(ask(Describe(table, "", "", low_watermark)), KeyOrder)
        assert ask(MaximumKey(table, ("k",), "PRIMARY", low_watermark)) == ("1",)
        assert ask(NextBoundary(table, ("k",), "PRIMARY", None, ("1",), 1_000)) is None

    assert _statements(connection) - before <= 12


def test_a_locked_table_takes_no_answer_from_the_others(
    connection: Any, mysql_address: MySqlAddress, database: str
) -> None:
    query(connection, f"CREATE TABLE {database}.u (k INT PRIMARY KEY)")
    query(connection, f"INSERT INTO {database}.u VALUES (5)")
    t, u = TableId(database, "t"), TableId(database, "u")
    low_watermark = executed(connection)
    with closing(connect(settings_of(mysql_address, "unused:1", "p", database).mysql)) as other:
        query(other, f"LOCK TABLES {t.sql} WRITE")
        ask = Answers(connection, ColumnRules())
        ask(LookAhead((DataCollection(t), DataCollection(u)), 1_000, low_watermark))

        assert ask(MaximumKey(u, ("k",), "PRIMARY", low_watermark)) == ("5",)
        assert isinstance(ask(MaximumKey(t, ("k",), "PRIMARY", low_watermark)), Failed)


class Beside:
    """A search beside the stream. Each question gets the next of `answers`, or NotYet if there is none."""

    is_able = True

    def __init__(self, slow: TableId | None = None) -> None:
        self.answers: list[Answer] = []
        self.asked: list[BesideQuestion] = []
        self.slow = slow

    def is_asked(self, _: BesideQuestion) -> bool:
        return False

    def is_slow(self, table: TableId) -> bool:
        return table == self.slow

    def took(self, table: TableId, seconds: float) -> None: ...

    def __call__(self, question: BesideQuestion) -> Answer:
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else NotYet()


def test_locked_tables_and_late_low_watermarks_delay_no_batch_beyond_its_limit(
    connection: Any, mysql_address: MySqlAddress, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A question that is given all its own time takes longer than a test may take.
    monkeypatch.setattr(key_search, "QUESTION_MS", 86_400_000)
    monkeypatch.setattr(answers, "QUESTION_MS", 86_400_000)
    monkeypatch.setattr(key_search, "_LOCK_SECONDS", 86_400)
    monkeypatch.setattr(answers, "_LOW_WATERMARK_SECONDS", 86_400.0)
    t = TableId(database, "t")
    low_watermark, coming = executed(connection), GtidSet.parse(f"{uuid4()}:1")
    beside = Beside()
    ask = Answers(connection, ColumnRules(), beside)
    maximum = MaximumKey(t, ("k",), "PRIMARY", low_watermark)
    questions: list[BesideQuestion] = [
        maximum,
        NextBoundary(t, ("k",), "PRIMARY", None, ("7",), 1),
        Describe(t, "", "v = 1", low_watermark),
        Describe(t, "", "", coming),
        Opened(t),
    ]
    with closing(connect(settings_of(mysql_address, "unused:1", "p", database).mysql)) as other:
        query(other, f"LOCK TABLES {t.sql} WRITE")
        assert all(isinstance(ask(question), NotYet) for question in questions)
        assert beside.asked == questions
        # Whoever is beside the stream waits for the lock itself, and so does a stream that has nobody beside it.
        assert isinstance(Answers(connection, ColumnRules())(Opened(t)), Failed)
        beside.answers = [None]
        assert ask(Opened(t)) is None
    monkeypatch.setattr(answers, "BATCH_SECONDS", PATIENCE_SECONDS)
    assert Answers(connection, ColumnRules(), beside)(maximum) == ("7",)


def test_slow_questions_are_asked_beside_the_stream_only(
    connection: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A quick answer may take longer than a batch waits, on a slow machine.
    monkeypatch.setattr(answers, "BATCH_SECONDS", PATIENCE_SECONDS)
    t = TableId(database, "t")
    low_watermark = executed(connection)

    def of(index: str) -> list[BesideQuestion]:
        return [MaximumKey(t, ("k",), index, low_watermark), NextBoundary(t, ("k",), index, None, ("7",), 1)]

    no_index, index = of(""), of("PRIMARY")
    beside, beside_slow = Beside(), Beside(slow=t)
    for question in (*no_index, *index):
        Answers(connection, ColumnRules(), beside)(question)
        Answers(connection, ColumnRules(), beside_slow)(question)

    assert beside.asked == no_index
    assert beside_slow.asked == [*no_index, *index]


def test_a_table_that_is_gone_can_be_asked_about(connection: Any, database: str) -> None:
    gone = TableId(database, "gone")
    ask = Answers(connection, ColumnRules())
    assert ask(Opened(gone)) is None
    assert isinstance(ask(Describe(gone, "", "", GtidSet())), Refused)


def test_a_batch_waits_for_its_low_watermark_once(
    connection: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[GtidSet] = []

    def wait_until_executed(connection: Any, low_watermark: GtidSet, seconds: float) -> None:
        waits.append(low_watermark)
        watermarks.wait_until_executed(connection, low_watermark, seconds)

    monkeypatch.setattr(answers, "wait_until_executed", wait_until_executed)
    table, coming = TableId(database, "t"), GtidSet.parse(f"{uuid4()}:1")
    ask = Answers(connection, ColumnRules())
    ask(LookAhead((DataCollection(table),) * 2, 10, coming))
    for _ in range(3):
        assert isinstance(ask(Describe(table, "", "", coming)), Failed)

    assert len(waits) == 1


def _statements(connection: Any) -> int:
    return int(query(connection, "SHOW SESSION STATUS LIKE 'Questions'")[0][1])
