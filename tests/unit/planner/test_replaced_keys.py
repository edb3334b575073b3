"""Tests of the tables whose snapshot begins again because a column of the key is another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from incsnap.ddl.online_changes import with_steps
from incsnap.ddl.online_tables import OnlineTables
from incsnap.ddl.statements import schema_change
from incsnap.envelope.column_rules import ColumnRules
from incsnap.events import UNKNOWN, SchemaChange, Session
from incsnap.planner.replaced_keys import tables_with_replaced_keys
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.context import Request, Scan
from incsnap.tables import TableId
from tests.support.online_runs import gh_ost, pt_osc, revert, spirit

T = TableId("shop", "t")
SCANS = [Scan(1, Request("s", DataCollection(T)), 10, ("Id",)), Scan(2, Request("s", DataCollection(T)), 10)]
ANEW = "DROP COLUMN id, ADD COLUMN id INT NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST"
RULES = ColumnRules(keys=(("shop.t", ("code",)),))


def changes(*statements: str) -> list[SchemaChange]:
    # The stream has the triggers of pt-online-schema-change as statements that change no table.
    made = [schema_change(sql, "shop") or SchemaChange(frozenset(), "shop", sql) for sql in statements]
    return [replace(each, session=Session("shop", 0), has_xid=True) for each in made]


@pytest.mark.parametrize(
    ("statements", "rules", "is_replaced"),
    [
        ([f"ALTER TABLE t {ANEW}"], ColumnRules(), True),
        (["ALTER TABLE t RENAME COLUMN id TO a, RENAME COLUMN a TO id"], ColumnRules(), True),
        (["ALTER TABLE t DROP COLUMN id", "ALTER TABLE t ADD COLUMN id INT PRIMARY KEY"], ColumnRules(), True),
        (["ALTER TABLE t MODIFY id BIGINT NOT NULL, ADD n INT, DROP m"], ColumnRules(), False),
        ([f"ALTER TABLE u {ANEW}"], ColumnRules(), False),
        (["ALTER TABLE t DROP code, ADD code INT"], RULES, True),
        (["ALTER TABLE t DROP code, ADD code INT"], ColumnRules(), False),
        ([f"ALTER TABLE t {ANEW} WHATEVER"], ColumnRules(), True),
    ],
)
def test_a_key_is_replaced_if_another_column_has_the_name_of_its_column(
    statements: list[str], rules: ColumnRules, is_replaced: bool
) -> None:
    assert tables_with_replaced_keys(SCANS, changes(*statements), rules) == ({T} if is_replaced else set())


def test_a_swap_whose_alteration_is_not_known_may_have_replaced_the_key() -> None:
    stepped = with_steps(OnlineTables(), changes(*gh_ost(drops_old=False), *revert()), lambda _: True).changes
    back = [change for change in stepped if change.online.swaps][-1]

    assert back.online.alteration_of(T) == UNKNOWN
    assert tables_with_replaced_keys(SCANS, [back], ColumnRules()) == {T}


@pytest.mark.parametrize("alter", [ANEW, "ADD n INT", "AUTO_INCREMENT=1000", "ADD n INT COMMENT 'a;\nDROP id'"])
@pytest.mark.parametrize("run", [gh_ost, pt_osc, spirit])
def test_the_swap_of_a_tool_counts_as_its_alteration(run: Callable[..., list[str]], alter: str) -> None:
    stepped = with_steps(OnlineTables(), changes(*run(alter=alter)), lambda _: True).changes

    assert any(change.online.swaps for change in stepped)
    assert tables_with_replaced_keys(SCANS, stepped, ColumnRules()) == ({T} if alter == ANEW else set())
