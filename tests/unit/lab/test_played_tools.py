"""Tests of the tools whose statements the ledger of online schema changes plays."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.compare import Comparison
from tests.online_ddl import copying, played
from tests.online_ddl.copying import FollowedTable, kept_columns
from tests.online_ddl.lake import compare_rows
from tests.online_ddl.tools import TOOLS

ORDERS = TableId("shop", "orders")
SERVER = MySqlAddress("db", 3306)


class Server:
    """A cursor that keeps all statements. `columns`: those of each table, which is named as in SQL."""

    def __init__(self, **columns: list[str]) -> None:
        self.sent: list[str] = []
        self.columns = columns

    def execute(self, sql: str, _: object = None) -> None:
        self.sent.append(sql)

    def fetchall(self) -> list[tuple[Any, ...]]:
        asked = self.sent[-1]
        if asked.startswith("SHOW COLUMNS"):
            return [(name,) for name in self.columns["copy" if "_orders_" in asked else "of"]]
        return [(7,)]


@pytest.mark.parametrize("spelt", ["CHANGE a b INT", "change column `a` `b` INT", "ADD d INT, CHANGE a  b BIGINT"])
def test_a_renamed_column_is_copied_and_a_dropped_one_is_not(spelt: str) -> None:
    server: Any = Server(of=["id", "a", "gone"], copy=["id", "b", "d"])
    assert kept_columns(server, "`orders`", "`_orders_gho`", spelt) == {"id": "id", "a": "b"}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Server:
    """Yield a server for a tool, whose rounds of replay and pauses stand among the statements."""
    server = Server(of=["id", "v"], copy=["id", "v", "n"])

    class Followed:
        def __init__(self, *_: object) -> None:
            server.sent.append("FOLLOW")

        def replay(self) -> int:
            server.sent.append("REPLAY")
            return 0

        replay_most = replay

    monkeypatch.setattr(played, "FollowedTable", Followed)
    monkeypatch.setattr(
        "tests.online_ddl.played.time.sleep", lambda seconds: server.sent.append(f"PAUSE {seconds:.0f}")
    )
    return server


@pytest.mark.parametrize(
    ("tool", "locked"),
    [
        ("spirit", ["REPLAY", "RENAME TABLE"]),
        ("gh-ost", ["REPLAY", "rename /* gh-ost */ table"]),
        ("gh-ost-two-step", ["REPLAY", "alter /* gh-ost */ table", "PAUSE 4", "alter /* gh-ost */ table"]),
    ],
)
def test_the_last_changes_are_replayed_under_the_lock_that_the_swap_holds(
    tool: str, locked: list[str], steps: Server
) -> None:
    played.PLAYED[tool](SERVER, steps, ORDERS, "ADD n INT, RENAME COLUMN x TO y")
    lock, unlock = (
        steps.sent.index(next(sql for sql in steps.sent if "LOCK T" in sql)),
        steps.sent.index("UNLOCK TABLES"),
    )
    inside = steps.sent[lock + 1 : unlock]
    assert [sql.startswith(begin) for sql, begin in zip(inside, locked, strict=True)] == [True] * len(locked)
    # Changes are followed from before the first row is copied.
    copied = next(number for number, sql in enumerate(steps.sent) if sql.startswith("INSERT IGNORE"))
    assert steps.sent.index("FOLLOW") < copied < lock


def test_changed_keys_are_deleted_from_the_copy_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Connection:
        def close(self) -> None:
            pass

    class Events:
        def decode(self) -> Any:
            column: Any = type("Column", (), {"to_pylist": lambda _: [5, 3, 5]})()
            return type("Images", (), {"columns": [column]})()

    ends = iter([("binlog.000001", 4), ("binlog.000001", 900), ("binlog.000001", 950)])
    asked: list[tuple[str, int]] = []
    shown: list[Any] = [Events(), None]
    monkeypatch.setattr(copying, "connect", lambda _: Connection())
    monkeypatch.setattr(copying, "charsets_of", lambda _: {})
    monkeypatch.setattr(copying, "end_of_binlog", lambda _: next(ends))
    monkeypatch.setattr(copying, "events_since", lambda _, position: asked.append(position))
    monkeypatch.setattr(copying, "rows_events", lambda *_: shown.pop(0))
    server: Any = Server()
    followed = FollowedTable(SERVER, server, ORDERS, "`_orders_new`", {"id": "id", "a": "b"})
    assert [followed.replay(), followed.replay()] == [2, 0]
    assert server.sent == [
        "DELETE FROM `_orders_new` WHERE id IN (3, 5)",
        "REPLACE INTO `_orders_new` (`id`, `b`) SELECT `id`, `a` FROM `shop`.`orders` WHERE id IN (3, 5)",
    ]
    assert asked == [("binlog.000001", 4), ("binlog.000001", 900)]


def test_rows_of_a_lake_are_compared_by_key() -> None:
    at = datetime(2026, 1, 1, 12)
    rows = [{"id": number, "v": "a", "at": at} for number in (1, 2, 3, 4)]
    there = [{"id": number, "v": "a", "at": at.replace(tzinfo=UTC)} for number in (1, 3, 4, 4, 5)]
    there[1]["v"] = "b"
    result = Comparison()
    compare_rows(rows, there, result)
    assert result.rows == 4
    assert result.missing.examples == ["key 2"]
    assert result.different.examples == ["key 3: v is 'a', there 'b'"]
    assert result.extra.examples == ["key 4, twice", "key 5"]
    # A column that only one side has is a difference, even if all its values are NULL.
    result = Comparison()
    compare_rows([{"id": 1, "v": None}], [{"id": 1}], result)
    assert result.different.count == 1


def test_spirit_is_called_with_a_statement() -> None:
    command = TOOLS["spirit"].command(SERVER, ORDERS, "ADD n INT")
    assert command[:2] == ["spirit", "migrate"]
    assert "--statement=ALTER TABLE `orders` ADD n INT" in command
