"""What the engine is told of a real table, behind the fence it names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from incsnap.envelope.column_rules import ColumnRules
from incsnap.gtid import GtidSet
from incsnap.mysql.connection import connect, query
from incsnap.mysql.fences import executed
from incsnap.pipeline.answers import Answers
from incsnap.sandbox.addresses import MySqlAddress
from incsnap.snapshot.questions import Describe, Described, Failed, MaximumKey
from incsnap.tables import TableId
from tests.support.planned_job import settings_of

pytestmark = pytest.mark.servers


@pytest.fixture
def connection(mysql_address: MySqlAddress, database: str) -> Iterator[Any]:
    with closing(connect(settings_of(mysql_address, "unused:1", "p", database).mysql)) as opened:
        query(opened, f"CREATE TABLE {database}.t (k INT PRIMARY KEY, v INT)")
        query(opened, f"INSERT INTO {database}.t VALUES (7, 1)")
        yield opened


def test_a_table_is_described_behind_its_fence(connection: Any, database: str) -> None:
    table = TableId(database, "t")
    query(connection, f"ALTER TABLE {table.sql} RENAME COLUMN k TO renamed")
    described = Answers(connection, ColumnRules())(Describe(table, "", "", executed(connection)))

    assert isinstance(described, Described)
    assert described.columns == ("renamed",)


def test_a_question_is_asked_again_while_what_was_delivered_is_not_visible(connection: Any, database: str) -> None:
    table, coming = TableId(database, "t"), GtidSet.parse(f"{uuid4()}:1")
    ask = Answers(connection, ColumnRules())
    for question in (Describe(table, "", "", coming), MaximumKey(table, ("k",), "PRIMARY", coming)):
        answer = ask(question)
        assert isinstance(answer, Failed)
        assert not answer.permanent
        assert "not visible" in answer.message
