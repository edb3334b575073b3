"""The ends of chunks, looked for beside the stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from incsnap.config.servers import MySqlSettings
from incsnap.envelope.column_rules import ColumnRules
from incsnap.errors import ServerUnreachable
from incsnap.gtid import GtidSet
from incsnap.mysql.session import connect, query
from incsnap.planner import boundary_search
from incsnap.planner.answers import Answers
from incsnap.planner.boundary_search import BoundarySearch
from incsnap.snapshot.commands import ChosenRows
from incsnap.snapshot.questions import (
    Answer,
    BesideQuestion,
    Describe,
    Failed,
    KeyOrder,
    NextBoundary,
    NotYet,
    Opened,
    Question,
)
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.servers


@pytest.fixture
def mysql(mysql_address: MySqlAddress, database: str) -> MySqlSettings:
    return settings_of(mysql_address, "unused:1", "p", database).mysql


@pytest.fixture
def connection(mysql: MySqlSettings, database: str) -> Iterator[Any]:
    with closing(connect(mysql)) as opened:
        query(opened, f"CREATE TABLE {database}.t (k INT PRIMARY KEY)")
        query(opened, f"INSERT INTO {database}.t VALUES (3), (5), (7), (12)")
        yield opened


class Searched:
    """A search, and what it has told."""

    def __init__(self, mysql: MySqlSettings) -> None:
        self.woken = threading.Event()
        self.search = BoundarySearch(mysql, ColumnRules(), self.woken.set)

    def later(self, question: BesideQuestion) -> Answer:
        """The answer, when it is there."""
        answer = self.search(question)
        while isinstance(answer, NotYet):
            assert self.woken.wait(PATIENCE_SECONDS)
            self.woken.clear()
            answer = self.search(question)
        return answer


@pytest.fixture
def searched(mysql: MySqlSettings) -> Iterator[Searched]:
    made = Searched(mysql)
    yield made
    made.search.close()


def after(table: TableId, key: str | None, rows: int) -> NextBoundary:
    return NextBoundary(table, ("k",), "PRIMARY", (key,) if key else None, ("12",), rows, beside=True)


def test_the_search_finds_the_planners_boundaries(connection: Any, searched: Searched, database: str) -> None:
    table = TableId(database, "t")
    ask = Answers(connection, ColumnRules(), searched.search)
    for question, key in (
        (after(table, None, 2), ("5",)),
        (after(table, "5", 1), ("7",)),
        (after(table, "5", 9), None),
    ):
        assert isinstance(ask(question), NotYet)
        assert searched.later(question) == key
        assert Answers(connection, ColumnRules())(question) == key


def test_an_answer_is_given_once(connection: Any, searched: Searched, database: str) -> None:
    table = TableId(database, "t")
    first, second = after(table, None, 1), after(table, None, 3)
    assert isinstance(searched.search(first), NotYet)
    assert searched.later(second) == ("7",)
    assert isinstance(searched.search(second), NotYet)


def test_later_boundaries_are_found_ahead_and_used_only_for_their_chunk_size(
    connection: Any, searched: Searched, database: str
) -> None:
    table = TableId(database, "t")
    assert searched.later(after(table, None, 1)) == ("3",)
    searched.woken.clear()
    # The thread has looked for the rest by itself: each is there without a wait, and nobody was woken for it.
    ahead = [after(table, key, 1) for key in ("3", "5")]
    wait_until(lambda: all(question in searched.search._answers for question in ahead))
    assert [searched.search(question) for question in ahead] == [("5",), ("7",)]
    assert not searched.woken.is_set()
    assert searched.later(after(table, "7", 2)) is None


def test_a_failed_search_ahead_is_not_reported(
    connection: Any, searched: Searched, mysql: MySqlSettings, database: str
) -> None:
    table = TableId(database, "t")
    searched.search._ahead[table] = after(table, None, 2)
    with closing(connect(mysql)) as other:
        query(other, f"LOCK TABLES {table.sql} WRITE")
        assert isinstance(searched.later(Opened(table)), Failed)
        wait_until(lambda: not searched.search._ahead)
        query(other, "UNLOCK TABLES")
    assert searched.later(after(table, None, 2)) == ("5",)


def test_a_tables_questions_of_two_kinds_are_both_answered(connection: Any, searched: Searched, database: str) -> None:
    table = TableId(database, "t")
    missing: list[BesideQuestion] = [Opened(table), after(table, None, 2)]
    while missing:
        missing = [question for question in missing if isinstance(searched.search(question), NotYet)]
        assert not missing or searched.woken.wait(PATIENCE_SECONDS)
        searched.woken.clear()


def test_several_tables_that_are_asked_about_in_turn_all_get_their_answers(
    connection: Any, searched: Searched, database: str
) -> None:
    tables = [TableId(database, name) for name in ("t", "u", "v")]
    for each in tables[1:]:
        query(connection, f"CREATE TABLE {each.sql} LIKE {tables[0].sql}")
        query(connection, f"INSERT INTO {each.sql} SELECT * FROM {tables[0].sql}")
    missing = [after(each, None, 2) for each in tables]
    while missing:
        missing = [question for question in missing if isinstance(searched.search(question), NotYet)]
        assert not missing or searched.woken.wait(PATIENCE_SECONDS)
        searched.woken.clear()


def test_answers_of_another_server_are_forgotten(connection: Any, searched: Searched, database: str) -> None:
    table = TableId(database, "t")
    question = after(table, None, 2)
    assert isinstance(searched.search(question), NotYet)
    assert searched.woken.wait(PATIENCE_SECONDS)
    before = _connections(connection)
    query(connection, f"DELETE FROM {table.sql} WHERE k = 3")
    searched.search.begin_again()
    assert searched.later(question) == ("7",)
    assert _connections(connection) - before


def test_a_locked_table_does_not_block_the_search(
    connection: Any, searched: Searched, mysql: MySqlSettings, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, go_on = TableId(database, "t"), threading.Event()

    def connect_later(*arguments: Any, **named: Any) -> Any:
        assert go_on.wait(PATIENCE_SECONDS)
        return connect(*arguments, **named)

    monkeypatch.setattr(boundary_search, "connect", connect_later)
    with closing(connect(mysql)) as other:
        query(other, f"LOCK TABLES {table.sql} WRITE")
        # The call comes back before the thread can ask anything: the thread waits for the lock.
        assert isinstance(searched.search(after(table, None, 2)), NotYet)
        go_on.set()
        answer = searched.later(after(table, None, 2))
        assert isinstance(answer, Failed)
        assert not answer.permanent
        assert isinstance(searched.later(Opened(table)), Failed)
        query(other, "UNLOCK TABLES")
        assert searched.later(Opened(table)) is None
        assert searched.later(after(table, None, 2)) == ("5",)


def test_the_first_question_is_answered_though_low_watermarks_are_late(
    connection: Any, searched: Searched, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boundary_search, "_LATE_SECONDS", PATIENCE_SECONDS)
    table = TableId(database, "t")
    first, later = (GtidSet.parse(f"{uuid4()}:1") for _ in range(2))
    asked = [Describe(table, "", "", low_watermark, asked=7) for low_watermark in (first, later, later)]
    assert all(isinstance(searched.search(question), NotYet) for question in asked)
    # A boundary needs no low watermark, and does not wait behind one.
    assert searched.later(after(table, None, 2)) == ("5",)
    query(connection, f"SET gtid_next = '{first}'")
    query(connection, "COMMIT")
    query(connection, "SET gtid_next = AUTOMATIC")

    answer = searched.later(asked[2])
    assert isinstance(answer, KeyOrder), answer
    assert isinstance(searched.search(Describe(table, "", "", later, asked=8)), NotYet)


def test_a_sort_that_takes_long_keeps_no_other_question_waiting(
    connection: Any, searched: Searched, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, go_on = TableId(database, "t"), threading.Event()
    sort = replace(after(table, None, 2), index="")

    class SlowAnswers(Answers):
        def __call__(self, question: Question) -> Answer:
            assert question != sort or go_on.wait(PATIENCE_SECONDS)
            return super().__call__(question)

    monkeypatch.setattr(boundary_search, "Answers", SlowAnswers)
    assert isinstance(searched.search(sort), NotYet)
    assert searched.later(after(table, None, 3)) == ("7",)
    assert isinstance(searched.search(sort), NotYet)
    go_on.set()
    assert searched.later(sort) == ("5",)


def test_a_list_of_keys_that_takes_long_keeps_no_other_question_waiting(
    connection: Any, searched: Searched, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, go_on = TableId(database, "t"), threading.Event()
    listed = Describe(table, "", "", GtidSet(), chosen=ChosenRows(topic="keys"))

    class SlowAnswers(Answers):
        def __call__(self, question: Question) -> Answer:
            if isinstance(question, Describe) and question.lists_keys:
                assert go_on.wait(PATIENCE_SECONDS)
                return Failed("read at last")
            return super().__call__(question)

    monkeypatch.setattr(boundary_search, "Answers", SlowAnswers)
    assert isinstance(searched.search(listed), NotYet)
    assert searched.later(after(table, None, 3)) == ("7",)
    assert isinstance(searched.search(listed), NotYet)
    go_on.set()
    assert searched.later(listed) == Failed("read at last")


def test_sorts_are_done_with_all_else_where_no_connection_is_left_for_them(
    connection: Any, searched: Searched, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect_but_for_sorts(*arguments: Any, **named: Any) -> Any:
        if threading.current_thread().name == "incsnap-sorts":
            raise ServerUnreachable("too many connections")
        return connect(*arguments, **named)

    monkeypatch.setattr(boundary_search, "connect", connect_but_for_sorts)
    assert searched.later(replace(after(TableId(database, "t"), None, 2), index="")) == ("5",)
    assert searched.search.is_able


def test_an_answer_that_takes_long_is_late(
    connection: Any, searched: Searched, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, go_on = after(TableId(database, "t"), None, 2), threading.Event()

    class SlowAnswers(Answers):
        def __call__(self, question: Question) -> Answer:
            assert go_on.wait(PATIENCE_SECONDS)
            return super().__call__(question)

    monkeypatch.setattr(boundary_search, "Answers", SlowAnswers)
    assert searched.search(question) == NotYet()
    wait_until(lambda: searched.search(question) == NotYet(is_late=True))
    go_on.set()
    assert searched.later(question) == ("5",)


def test_a_connection_that_was_lost_is_made_again(connection: Any, searched: Searched, database: str) -> None:
    table = TableId(database, "t")
    others = _connections(connection)
    assert searched.later(after(table, None, 2)) == ("5",)
    (its_own,) = _connections(connection) - others
    query(connection, f"KILL {its_own}")
    assert searched.later(after(table, "5", 1)) == ("7",)


def test_without_a_free_connection_the_planners_own_is_used(connection: Any, database: str) -> None:
    nobody = settings_of(MySqlAddress("127.0.0.1", 1), "unused:1", "p", "d").mysql
    searched = Searched(nobody)
    question = after(TableId(database, "t"), None, 2)
    ask = Answers(connection, ColumnRules(), searched.search)
    assert isinstance(ask(question), NotYet)
    assert searched.woken.wait(PATIENCE_SECONDS)
    searched.search.close()
    assert not searched.search.is_able
    assert Answers(connection, ColumnRules(), searched.search)(question) == ("5",)
    # A list may take minutes, in which the stream would stand still.
    listed = Describe(TableId(database, "t"), "", "", GtidSet(), chosen=ChosenRows(topic="keys"))
    answer = Answers(connection, ColumnRules(), searched.search)(listed)
    assert isinstance(answer, Failed)
    assert not answer.permanent
    assert "the server gives none now" in answer.message


def _connections(connection: Any) -> set[str]:
    return {str(row[0]) for row in query(connection, "SELECT id FROM information_schema.processlist")}
