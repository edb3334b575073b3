"""The rule by which an answer of the server is taken for what tables are behind a batch's end, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest
from pymysql.connections import Connection

from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.planner.definitions import NotCertain, answer_behind
from lab.addresses import MySqlAddress
from lab.mysql_client import connect

pytestmark = pytest.mark.servers

_NEVER = GtidSet.parse(f"{uuid4()}:1")
_CHANGE = SchemaChange(None, "", "ALTER TABLE t ADD v INT")


@pytest.fixture
def connection(mysql_address: MySqlAddress) -> Iterator[Connection[Any]]:
    with closing(connect(mysql_address)) as opened:
        yield opened


class Rule:
    """A question to the server; `done` lists its steps. `later`: the statements that the tail reports afterwards."""

    def __init__(self, connection: Connection[Any], later: tuple[SchemaChange, ...] | None = ()) -> None:
        self.connection, self.later, self.done = connection, later, list[str]()

    def ask(self, delivered: GtidSet, *, open_gtid: str = "", same_server: bool = True) -> tuple[str, Any]:
        end = StreamPosition(delivered, "binlog.000001", 4, open_gtid)
        return answer_behind(self._question, end, self.connection, self._changes, 0.01, same_server=same_server)

    def _question(self) -> str:
        self.done.append("asked")
        return "answer"

    def _changes(
        self, position: StreamPosition, until: tuple[str, int], seconds: float
    ) -> tuple[SchemaChange, ...] | None:
        assert until <= watermarks.high_watermark(self.connection)
        self.done.append("read on")
        return self.later


def test_another_server_is_not_asked_for_definitions(connection: Connection[Any]) -> None:
    rule = Rule(connection, None)
    with pytest.raises(NotCertain, match="another server"):
        rule.ask(_NEVER, same_server=False)
    assert rule.done == []


@pytest.mark.parametrize(("delivered", "open_gtid"), [(_NEVER, ""), (GtidSet(), str(_NEVER))], ids=["whole", "open"])
def test_a_server_that_has_not_executed_what_was_read_is_not_asked(
    connection: Connection[Any], delivered: GtidSet, open_gtid: str
) -> None:
    rule = Rule(connection, None)
    with pytest.raises(NotCertain, match="not visible"):
        rule.ask(delivered, open_gtid=open_gtid)
    assert rule.done == []


def test_an_answer_is_certain_once_the_binlog_was_read_to_its_end_behind_it(connection: Connection[Any]) -> None:
    rule = Rule(connection, (_CHANGE,))
    assert rule.ask(watermarks.executed(connection)) == ("answer", (_CHANGE,))
    assert rule.done == ["asked", "read on"]


def test_an_answer_is_not_certain_while_the_binlog_was_not_read_to_its_end(connection: Connection[Any]) -> None:
    rule = Rule(connection, None)
    with pytest.raises(NotCertain, match="not read to its end"):
        rule.ask(GtidSet())
    assert rule.done == ["asked", "read on"]
