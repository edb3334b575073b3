"""Tests of `AlteredTable`: what statements tell about the columns of a table that is compared behind them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.ddl.column_statements import ColumnStatements
from incsnap.ddl.old_rows import DefinedColumn, DefinedTable, Origins, changed_columns, unknown_values
from incsnap.ddl.online_changes import OnlineBatch, with_steps
from incsnap.ddl.online_tables import OnlineTables
from incsnap.ddl.statements import schema_change
from incsnap.events import Session
from incsnap.planner.altered_tables import AlteredTable, statements_about
from incsnap.tables import TableId
from tests.support.online_runs import gh_ost, revert

T = TableId("shop", "t")
SESSION = Session("shop", 0, explicit_timestamps=True)
TWO_STEP = gh_ost(alter="DROP a, ADD b INT", two_step=True)


ID = DefinedColumn("id", "int", nullable=False)
A = DefinedColumn("a", "int")
TEXT = DefinedColumn("c", "text", charset="utf8mb4")


def followed(*statements: str, before: OnlineTables | None = None) -> OnlineBatch:
    made = [schema_change(sql, "shop", sql_mode=0) for sql in statements]
    changes = [replace(change, session=SESSION) for change in made if change is not None]
    return with_steps(before or OnlineTables(), changes, lambda _: True)


def behind(*statements: str, before: OnlineTables | None = None) -> AlteredTable:
    """The table shop.t behind statements."""
    altered = AlteredTable(T)
    for change in followed(*statements, before=before).changes:
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


def test_a_text_of_an_alteration_may_look_like_the_end_of_a_statement() -> None:
    alter = "ADD n INT DEFAULT 5 COMMENT 'a;\nb'"
    [change] = [each for each in followed(*gh_ost(alter=alter)).changes if each.online.swaps]
    assert statements_about(T, change) == [f"ALTER TABLE {T.sql} {alter}"]
    assert AlteredTable(T).behind(change).origins == (("n", None),)


def test_the_counter_of_a_table_is_an_alteration_of_no_column() -> None:
    [change] = [each for each in followed(*gh_ost(alter="AUTO_INCREMENT=1000")).changes if each.online.swaps]
    assert statements_about(T, change) == []
    assert AlteredTable(T).behind(change).origins == ()


def test_a_swap_in_two_steps_whose_alteration_is_not_known_has_unknown_origins() -> None:
    altering = next(sql for sql in TWO_STEP if "DROP a" in sql)

    assert behind(*TWO_STEP).origins == (("b", None),)
    assert (
        behind(*(sql.replace("DROP a, ADD b INT", "(") if sql == altering else sql for sql in TWO_STEP)).origins is None
    )


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


def test_a_statement_whose_names_are_garbled_may_have_defined_any_column() -> None:
    change = schema_change("ALTER TABLE gr\ufffdn DROP a, ADD a INT DEFAULT 5", "shop", exact=False)
    assert change is not None

    altered = AlteredTable(T).behind(change)

    assert (altered.origins, altered.statements) == (None, ColumnStatements(unread=1))
    assert reasons([A], [A], altered) == (0, 0)
    assert reasons([A], [A], altered.behind(change)) == (2, 2)
    assert statements_about(T, change) == []


def test_a_rename_whose_names_are_garbled_may_have_brought_another_table() -> None:
    change = schema_change("RENAME TABLE gr\ufffdn TO t_old, t_new TO gr\ufffdn", "shop", exact=False)
    assert change is not None

    altered = AlteredTable(T).behind(change)

    assert (altered.origins, altered.statements) == (None, ColumnStatements(others=1))


def reasons(before: list[DefinedColumn], after: list[DefinedColumn], altered: AlteredTable) -> tuple[int, int]:
    """The numbers of reasons to read the table again: with `changed`, and with `all`."""
    first, last = (DefinedTable((ID, *columns), ("id",)) for columns in (before, after))
    origins: Origins | None = None if altered.origins is None else dict(altered.origins)
    decisions = (decide(first, last, origins, altered.statements) for decide in (unknown_values, changed_columns))
    changed, every = map(len, decisions)
    return changed, every


@pytest.mark.parametrize(
    ("before", "statements"),
    [
        ([TEXT], ["MODIFY c TEXT CHARACTER SET latin1", "MODIFY c BLOB", "MODIFY c TEXT CHARACTER SET utf8mb4"]),
        ([TEXT], ["CONVERT TO CHARACTER SET latin1", "CONVERT TO CHARACTER SET utf8mb4"]),
        ([TEXT], ["CONVERT TO CHARACTER SET latin1", "MODIFY c TEXT CHARACTER SET utf8mb4"]),
        ([A], ["MODIFY a INT NOT NULL", "MODIFY A INT NULL"]),
        ([A], ["CHANGE a b INT NOT NULL", "CHANGE b a INT"]),
        ([], ["ADD COLUMN `a` integer DEFAULT 5 NULL", "ALTER COLUMN `a` DROP DEFAULT"]),
        ([], ["ADD b INT DEFAULT 5", "RENAME COLUMN b TO a", "ALTER a SET DEFAULT NULL"]),
        ([], ["ADD a DATETIME DEFAULT CURRENT_TIMESTAMP", "ALTER a SET DEFAULT NULL"]),
        ([], ["ADD a INT AS (id * 2) STORED", "MODIFY a INT"]),
        ([], ["ADD b INT DEFAULT 1", "RENAME COLUMN b TO a, ALTER COLUMN b SET DEFAULT 5"]),
    ],
)
def test_several_statements_about_a_column_are_a_reason(before: list[DefinedColumn], statements: list[str]) -> None:
    altered = behind(*(f"ALTER TABLE t {each}" for each in statements))

    assert reasons(before, before or [A], altered) == (1, 1)


@pytest.mark.parametrize(
    ("before", "statements"),
    [
        ([A], ["MODIFY a SOMETHING NEW", "MODIFY a INT NULL"]),
        ([A], ["MODIFY a INT UNSIGNED", "MODIFY a SOMETHING NEW"]),
        ([A], ["SOMETHING NEW", "MODIFY a SOMETHING NEW"]),
        ([], ["ADD a INT DEFAULT 1, SOMETHING NEW", "ALTER a SET DEFAULT 5"]),
    ],
)
def test_a_statement_that_is_not_understood_may_have_defined_a_column(
    before: list[DefinedColumn], statements: list[str]
) -> None:
    altered = behind(*(f"ALTER TABLE t {each}" for each in statements))

    changed, every = reasons(before, [A], altered)

    assert changed
    assert every


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE t MODIFY a INT", "CREATE TABLE IF NOT EXISTS t (a INT)"],
        ["ALTER TABLE t MODIFY a INT", "CREATE INDEX i ON t (a)"],
        ["RENAME TABLE t TO u", "RENAME TABLE u TO t"],
        ["ALTER TABLE t SOMETHING NEW"],
        [
            "CREATE DATABASE IF NOT EXISTS shop",
            "ALTER DATABASE shop CHARACTER SET latin1",
            "ALTER DATABASE shop READ ONLY 1",
        ],
    ],
)
def test_a_statement_that_defines_no_column_does_not_count(statements: list[str]) -> None:
    assert reasons([A], [A], behind(*statements)) == (0, 0)


@pytest.mark.parametrize(
    "statements",
    [
        ["MODIFY a INT", "MODIFY c TEXT"],
        ["MODIFY a INT", "CONVERT TO CHARACTER SET utf8mb4"],
        ["CONVERT TO CHARACTER SET utf8mb4", "ADD INDEX i (a)", "RENAME INDEX i TO j", "DROP INDEX j"],
        ["ALTER a SET DEFAULT 5", "ALTER a SET DEFAULT 6", "ALTER a DROP DEFAULT"],
        ["MODIFY a INT DEFAULT 5", "ALTER a DROP DEFAULT"],
        ["ADD n INT DEFAULT 5", "DROP n"],
    ],
)
def test_one_statement_for_each_column_is_no_reason(statements: list[str]) -> None:
    altered = behind(*(f"ALTER TABLE t {each}" for each in statements))

    assert reasons([A, TEXT], [A, TEXT], altered) == (0, 0)


def test_a_column_that_is_dropped_and_added_again_begins_anew() -> None:
    altered = behind("ALTER TABLE t ADD a INT DEFAULT 5", "ALTER TABLE t DROP a", "ALTER TABLE t ADD a INT")

    assert reasons([], [A], altered) == (0, 1)


def test_the_alterations_of_a_copy_before_its_swap_count_as_one_statement() -> None:
    run = gh_ost(alter="ADD a INT DEFAULT 5")
    alter = next(at for at, sql in enumerate(run) if "ADD a" in sql)
    run.insert(alter + 1, "alter /* gh-ost */ table `shop`.`_t_gho` ALTER a SET DEFAULT 6")

    assert reasons([], [A], behind(*run)) == (0, 1)


@pytest.mark.parametrize(
    "swap",
    [
        "RENAME TABLE t TO x, u TO t, x TO u",
        "RENAME TABLE t TO x, u TO t",
        "RENAME TABLE T TO x, u TO t, x TO u",
    ],
)
def test_a_table_that_two_renames_swap_is_another_one(swap: str) -> None:
    assert reasons([A], [replace(A, type="bigint")], behind(swap)) == (1, 1)


def test_a_table_that_keeps_its_name_beside_another_rename_is_the_same() -> None:
    assert reasons([A], [replace(A, type="bigint")], behind("RENAME TABLE t TO x, x TO t, u TO v")) == (0, 1)


def test_a_table_that_takes_this_ones_place_has_its_own_values_in_each_column_that_differs() -> None:
    done, back = gh_ost(drops_old=False, alter="DROP a"), revert()
    tables = followed(*done).tables
    longer = replace(TEXT, type="varchar(50)")

    assert reasons([], [A], behind(*back, before=tables)) == (1, 1)
    assert reasons([A, replace(TEXT, type="varchar(5)")], [A, longer], behind(*back, before=tables)) == (1, 1)
    assert reasons([A, TEXT], [A, TEXT], behind(*back, before=tables)) == (0, 0)
    assert reasons([A, TEXT], [A, TEXT], behind(*done, *back)) == (3, 3)


def test_a_table_of_a_copy_that_a_tool_has_filled_is_told_from_an_altered_one() -> None:
    assert behind(*gh_ost(alter="MODIFY a INT")).is_copied
    assert behind(*gh_ost(alter="MODIFY a INT"), "ALTER TABLE t ADD b INT").is_copied
    assert not behind("ALTER TABLE t MODIFY a INT").is_copied
