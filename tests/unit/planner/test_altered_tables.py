"""Tests of `AlteredTable`: what statements tell about the columns of a table that is compared behind them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.ddl.online_changes import with_steps
from incsnap.ddl.online_tables import OnlineTables
from incsnap.ddl.statements import schema_change
from incsnap.events import Session
from incsnap.planner.old_rows import AlteredTable
from incsnap.tables import TableId
from tests.support.online_runs import gh_ost

T = TableId("shop", "t")
SESSION = Session("shop", 0, explicit_timestamps=True)
TWO_STEP = gh_ost(alter="DROP a, ADD b INT", two_step=True)


def behind(*statements: str, before: OnlineTables | None = None) -> AlteredTable:
    """The table shop.t behind statements."""
    made = [schema_change(sql, "shop", sql_mode=0) for sql in statements]
    changes = [replace(change, session=SESSION) for change in made if change is not None]
    altered = AlteredTable(T)
    for change in with_steps(before or OnlineTables(), changes, lambda _: True).changes:
        if change.touches(T) and not change.online.hides(T):
            altered = altered.behind(change)
    return altered


@pytest.mark.parametrize(
    "statements",
    [
        ["RENAME TABLE t TO t_old, t_new TO t"],
        ["RENAME TABLE t TO t_old", "RENAME TABLE t_new TO t"],
        ["ALTER TABLE t RENAME TO t_old", "ALTER TABLE t_new RENAME TO t"],
        ["ALTER TABLE t RENAME TO t_old", "ALTER TABLE t_new ADD n INT, RENAME t"],
        [sql for sql in TWO_STEP if " rename " in sql],
    ],
)
def test_the_columns_of_a_table_that_takes_this_ones_place_have_unknown_origins(statements: list[str]) -> None:
    assert behind(*statements).origins is None


def test_a_swap_in_two_steps_whose_alteration_is_not_known_has_unknown_origins() -> None:
    altering = next(sql for sql in TWO_STEP if "DROP a" in sql)

    assert behind(*TWO_STEP).origins == (("b", None),)
    assert behind(*(sql.replace("DROP a, ADD b INT", "(") if sql == altering else sql for sql in TWO_STEP)).origins is None


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t RENAME TO t_old",
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
        "ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t",
    ],
)
def test_a_statement_that_brings_no_other_columns_keeps_the_origins(sql: str) -> None:
    assert behind("ALTER TABLE t ADD n INT", sql).origins == (("n", None),)


def test_a_statement_whose_names_are_garbled_tells_no_origins() -> None:
    change = schema_change("ALTER TABLE gr\ufffdn DROP a, ADD a INT", "shop", exact=False)
    assert change is not None

    assert AlteredTable(T).behind(change).origins is None
