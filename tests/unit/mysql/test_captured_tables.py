"""The captured tables of commands that have no checkpoint: those of tools are left out as in a job's stream."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import pytest

from incsnap.config.load import from_properties
from incsnap.config.patterns import TableFilter
from incsnap.ddl.online_tables import OnlineTable, OnlineTables
from incsnap.mysql import online_tables
from incsnap.mysql.online_tables import captured_tables
from incsnap.tables import TableId
from tests.support.properties import NEEDED

_NAMES = ("_T_gho", "_t_ghc", "_x_new", "t")
_ALL = [TableId("d", name) for name in _NAMES]
_NO_CONNECTION: Any = None


@pytest.fixture(autouse=True)
def _server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with the tables `_ALL`, on which gh-ost alters `t`."""

    def of_tools(connection: object, existing: Collection[TableId]) -> OnlineTables:
        """Only the changelog proves that the copy is the tool's."""
        if TableId("d", "_t_ghc") not in existing:
            return OnlineTables()
        return OnlineTables((tool("_t_ghc", "log"), tool("_t_gho", "copy")))

    def tool(name: str, role: Literal["log", "copy"]) -> OnlineTable:
        return OnlineTable(TableId("d", name), "gh-ost", role, trace="its name")

    def tables(connection: object, included: TableFilter) -> list[TableId]:
        return [table for table in _ALL if included.included(table)]

    monkeypatch.setattr(online_tables, "online_tables", of_tools)
    monkeypatch.setattr(online_tables, "tables", tables)


def captured(named: Collection[str] = (), **properties: str) -> list[str]:
    settings = from_properties({**NEEDED, **properties}).settings
    return [table.table for table in captured_tables(_NO_CONNECTION, settings, named)]


def test_tables_of_tools_are_left_out_unless_they_are_named() -> None:
    assert captured() == ["_x_new", "t"]
    assert captured(named=("d._T_gho", "d.t")) == ["_T_gho", "_x_new", "t"]


def test_a_changelog_that_is_not_captured_proves_whose_the_copy_is() -> None:
    assert captured(**{"table.include.list": r"d\.(t|_t_gho)"}) == ["t"]


def test_the_setting_captures_tables_of_tools() -> None:
    assert captured(**{"incsnap.online.ddl.tables": "capture"}) == list(_NAMES)
