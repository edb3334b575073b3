"""The server is asked for a table's DEFAULTs once, and again behind a statement about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from incsnap.events import SchemaChange
from incsnap.mysql import column_defaults
from incsnap.mysql.column_defaults import KnownDefaults
from incsnap.tables import Declared, Defaults, TableId

A, B, PLAIN = (TableId("db", name) for name in ("a", "b", "plain"))


class Server:
    """A server that answers each question with another DEFAULT. The table `PLAIN` has no DEFAULT."""

    def __init__(self) -> None:
        self.asked: list[list[TableId]] = []

    def defaults_of(self, _: Any, tables: Sequence[TableId], *, definitions: bool) -> dict[TableId, Defaults]:
        if tables:
            self.asked.append(list(tables))
        return {table: () if table == PLAIN else (Declared("c", "int", str(len(self.asked))),) for table in tables}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(column_defaults, "defaults_of", made.defaults_of)
    return made


def learned(known: KnownDefaults, tables: Sequence[TableId], *changed: TableId) -> dict[TableId, str | None]:
    changes = [SchemaChange(frozenset({table}), table.database, "ALTER") for table in changed]
    return {table: columns[0][2] for table, columns in known.learned(cast(Any, None), tables, changes)}


def test_a_table_is_asked_about_once_and_stays_known(server: Server) -> None:
    known = KnownDefaults()
    assert learned(known, [B, A, PLAIN]) == {A: "1", B: "1"}
    assert learned(known, [PLAIN]) == {A: "1", B: "1"}
    assert learned(known, []) == {A: "1", B: "1"}
    assert server.asked == [[A, B, PLAIN]]


def test_behind_a_statement_about_it_a_table_is_asked_about_again_when_it_is_changed(server: Server) -> None:
    known = KnownDefaults()
    learned(known, [A, B])
    assert learned(known, [A], A) == {A: "2", B: "1"}
    assert learned(known, [], B) == {A: "2"}
    assert learned(known, [B]) == {A: "2", B: "3"}


def test_the_most_recent_tables_are_remembered(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_defaults, "_MOST", 2)
    known = KnownDefaults()
    assert learned(known, [A]) == {A: "1"}
    assert learned(known, [B]) == {A: "1", B: "2"}
    assert learned(known, [B, PLAIN]) == {B: "2"}
    assert learned(known, [A, B, PLAIN]) == {A: "4", B: "2"}
