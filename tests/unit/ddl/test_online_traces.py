"""Tests of the traces that make a table a tool's: tables that only look like a tool's are captured like any other."""

from __future__ import annotations

import pytest

from incsnap.ddl.online_ddl import after_statement
from incsnap.ddl.online_tables import OnlineTables
from incsnap.events import UNKNOWN
from incsnap.tables import TableId
from tests.support.online_runs import GH_OST_CHECKPOINT, pt_osc, spirit, spirit_of_several

SEVERAL = spirit_of_several()
#: The statements by which spirit makes its common checkpoint.
CHECKPOINT = [sql for sql in SEVERAL if "_spirit_checkpoint" in sql][:2]


def _follow(statements: list[str]) -> tuple[OnlineTables, list[tuple[str, str]]]:
    """Follow the statements. Return the tables of tools behind them, and the table and the text of each swap."""
    tables, swaps = OnlineTables(), []
    for sql in statements:
        tables, step = after_statement(tables, sql, "shop")
        swaps += [(table.table, ";\n".join(each)) for table, _, each in (step.swaps if step is not None else ())]
    return tables, swaps


def _names(statements: list[str]) -> set[str]:
    """Return the tables that belong to tools behind the statements."""
    tables, _ = _follow(statements)
    return {each.table.table for each in tables.certain()}


def test_a_run_of_spirit_on_several_tables_is_one_alter_of_each() -> None:
    tables, swaps = _follow(SEVERAL)
    assert swaps == [(table, f"ALTER TABLE `shop`.`{table}` ADD n INT") for table in ("t", "u")]
    assert tables == OnlineTables()
    checkpoint = SEVERAL.index(CHECKPOINT[1])
    assert _names(SEVERAL[:checkpoint]) == set()
    assert _names(SEVERAL[: checkpoint + 1]) == {"_t_new", "_u_new", "_spirit_checkpoint"}


@pytest.mark.parametrize(
    "foreign",
    [
        ["CREATE TABLE _x_new LIKE x"],
        ["CREATE TABLE _x_new LIKE x", "ALTER TABLE _x_new ADD c INT"],
        ["CREATE TABLE _x_new LIKE x", "ALTER TABLE _x_new AUTO_INCREMENT = 7"],
        ["CREATE TABLE _x_new (id INT PRIMARY KEY)"],
    ],
    ids=lambda statements: "; ".join(statements),
)
def test_spirits_common_checkpoint_does_not_claim_a_table_that_spirit_has_not_made(foreign: list[str]) -> None:
    swap = ["RENAME TABLE x TO _x_old, _x_new TO x"]
    # The table is there when a run on other tables begins, or is made while the checkpoint is there.
    for statements in ([*foreign, *CHECKPOINT], [*CHECKPOINT, *foreign], [*CHECKPOINT, *foreign, *CHECKPOINT]):
        assert _names(statements) == {"_spirit_checkpoint"}
        _, swaps = _follow([*statements, *swap])
        assert not swaps


def test_a_checkpoint_that_was_left_does_not_hide_a_later_run() -> None:
    _, swaps = _follow([*CHECKPOINT, *SEVERAL])
    assert [table for table, _ in swaps] == ["t", "u"]
    _, swaps = _follow([*CHECKPOINT, *spirit()])
    assert swaps == [("t", "ALTER TABLE `shop`.`t` ADD n INT")]


def test_the_checkpoint_of_a_killed_run_of_spirit_does_not_claim_a_table_that_a_person_has_made() -> None:
    made = next(number for number, sql in enumerate(spirit()) if "copier_watermark" in sql)
    left = [*spirit()[: made + 1], "DROP TABLE `shop`.`_t_new`"]
    foreign = [*left, "CREATE TABLE _t_new LIKE t", "ALTER TABLE _t_new ADD c INT", "CREATE TABLE _x_new LIKE x"]
    assert _names(foreign) == {"_t_chkpnt"}
    _, swaps = _follow([*foreign, "RENAME TABLE t TO _t_old, _t_new TO t"])
    assert not swaps
    # spirit makes its copy and its checkpoint again. It may not be able to alter partitions with ALGORITHM=COPY.
    for suffix in (", ALGORITHM=COPY", ""):
        again = [sql.replace(", ALGORITHM=COPY", suffix) for sql in spirit()]
        _, swaps = _follow([*foreign, *again])
        assert swaps == [("t", "ALTER TABLE `shop`.`t` ADD n INT")]


@pytest.mark.parametrize("name", ["_my_spirit_sentinel", "_my_spirit_move_revert", "_spirit_sentinel_old"])
def test_a_name_that_ends_as_a_signal_to_spirit_is_no_signal(name: str) -> None:
    assert not _names([f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY)"])
    assert _names(["CREATE TABLE _SPIRIT_Sentinel (id INT NOT NULL PRIMARY KEY)"]) == {"_SPIRIT_Sentinel"}


@pytest.mark.parametrize("name", ["_my_spirit_checkpoint", "_my_spirit_move_checkpoint", "spirit_checkpoint"])
def test_a_name_that_ends_as_spirits_common_checkpoint_is_none(name: str) -> None:
    assert not _names([f"CREATE TABLE {name} (id INT, copier_watermark TEXT)"])


def test_the_checkpoint_of_gh_ost_is_known_by_its_column() -> None:
    made = next(number for number, sql in enumerate(GH_OST_CHECKPOINT) if "gh_ost_chk_id" in sql)
    assert "_t_ghk" in _names(GH_OST_CHECKPOINT[: made + 1])
    assert not _names(["CREATE TABLE _t_ghk (id INT PRIMARY KEY)"])


def test_the_alterations_of_a_copy_whose_creation_was_not_seen_are_unknown() -> None:
    run = pt_osc()
    swap = next(number for number, sql in enumerate(run) if sql.startswith("RENAME"))
    # The job begins behind the ALTER, or the tool has a name of its own for the copy (--new-table-name).
    tables, swaps = _follow([*run[2:swap], "ALTER TABLE `shop`.`_t_new` ADD c INT", run[swap]])
    assert swaps == [("t", "")]
    tables, _ = _follow(run[2:swap])
    assert [each.alterations for each in tables.tables] == [UNKNOWN]
    assert [each.statements_about(TableId("shop", "t")) for each in tables.tables] == [UNKNOWN]
