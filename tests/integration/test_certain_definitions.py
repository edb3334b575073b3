"""The rule by which an answer of the server is taken for what tables are behind a batch's end, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from pymysql.connections import Connection

from incsnap.binlog.tail import Tail
from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.planner.definitions import DefinitionsAt, NotCertain, answer_behind
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.mysql_client import connect

pytestmark = pytest.mark.servers

_NEVER = GtidSet.parse(f"{uuid4()}:1")
_CHANGE = SchemaChange(None, "", "ALTER TABLE t ADD v INT")
_TRUNCATE = SchemaChange(None, "", "TRUNCATE TABLE t", truncates=True)


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


@pytest.mark.parametrize(
    ("later", "delivers", "same_server", "missing"),
    [
        ((), True, True, True),
        ((_CHANGE,), True, True, False),  # the statement may have taken the table away
        ((_TRUNCATE,), True, True, True),
        (None, True, True, False),  # the binlog was not read to its end
        ((), False, True, False),  # the server has not executed what was read
        ((_CHANGE,), True, False, True),  # nothing else can be known of another server
    ],
)
def test_a_table_is_missing_at_a_batchs_end_only_if_no_later_statement_has_taken_it_away(
    connection: Connection[Any],
    later: tuple[SchemaChange, ...] | None,
    delivers: bool,
    same_server: bool,
    missing: bool,
) -> None:
    end = StreamPosition(watermarks.executed(connection) if delivers else _NEVER, "binlog.000001", 4)
    tail = cast("Tail", SimpleNamespace(changes_behind=lambda *_: later))

    assert DefinitionsAt(connection, tail, end, same_server).is_missing(TableId("shop", "t")) == missing
