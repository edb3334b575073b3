"""Tests of online schema changes, recognised by the statements of the tools that make them."""

from __future__ import annotations

import pytest

from incsnap.ddl.online_ddl import after_statement
from incsnap.ddl.online_tables import OnlineTables
from incsnap.events import OnlineStep
from incsnap.tables import TableId
from tests.support.online_runs import (
    GH_OST,
    GH_OST_CHECKPOINT,
    GH_OST_RESUMED,
    GH_OST_TWO_STEP,
    PT_OSC,
    PT_OSC_FOREIGN_KEYS,
    PT_OSC_TRIGGERS,
    SPIRIT,
    changelog,
    gh_ost,
    pt_osc,
    revert,
    spirit,
)

NOTHING = OnlineTables()
T = TableId("shop", "t")


def _run(
    *statements: str, before: OnlineTables = NOTHING, foreign_key_checks: bool = False
) -> tuple[OnlineTables, list[OnlineStep | None]]:
    """Follow the statements. Return the tables of tools behind them, and each statement's step."""
    tables, steps = before, []
    for sql in statements:
        tables, step = after_statement(tables, sql, "shop", foreign_key_checks=foreign_key_checks)
        steps.append(step)
    return tables, steps


def _names(tables: OnlineTables) -> set[str]:
    return {each.table.table for each in tables.certain()}


def _swaps(steps: list[OnlineStep | None]) -> list[tuple[TableId, str, str]]:
    """Return the swaps. The statements of each are one text, "" for an alteration that is not known."""
    swaps = [swap for step in steps if step is not None for swap in step.swaps]
    return [(table, tool, ";\n".join(statements)) for table, tool, statements in swaps]


RUNS = {
    "gh-ost": GH_OST,
    "gh-ost two-step": GH_OST_TWO_STEP,
    "gh-ost --checkpoint": GH_OST_CHECKPOINT,
    "gh-ost --resume": GH_OST_RESUMED,
    "pt-online-schema-change": PT_OSC,
    "rebuild_constraints": PT_OSC_FOREIGN_KEYS,
    "--preserve-triggers": PT_OSC_TRIGGERS,
    "spirit": SPIRIT,
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_run_is_one_alter_of_the_table(run: list[str]) -> None:
    tables, steps = _run(*run)
    [(table, _, text)] = _swaps(steps)
    assert (table, text) == (T, "ALTER TABLE `shop`.`t` ADD n INT")
    assert not tables.away


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_two_runs_in_a_row_are_two_alters(run: list[str]) -> None:
    _tables, steps = _run(*run, *run)
    assert len(_swaps(steps)) == 2
    assert {text for _, _, text in _swaps(steps)} == {"ALTER TABLE `shop`.`t` ADD n INT"}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("until", range(1, 12))
def test_a_run_that_is_given_up_changes_nothing_of_the_next_one(run: list[str], until: int) -> None:
    swap = next(number for number, sql in enumerate(run) if "RENAME" in sql.upper())
    given_up, _ = _run(*run[: min(until, swap)])
    cleared = [f"DROP TABLE IF EXISTS {each.table.sql}" for each in given_up.tables]
    clear, _ = _run(*cleared, before=given_up)
    assert clear == NOTHING
    for before in (given_up, clear):
        _, steps = _run(*run, before=before)
        assert [text for _, _, text in _swaps(steps)] == ["ALTER TABLE `shop`.`t` ADD n INT"]


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_the_statements_of_a_run_hide_the_tools_tables_and_never_the_swapped_one(run: list[str]) -> None:
    tables = NOTHING
    for sql in run:
        own = {_of(name) for name in ("gho", "ghc", "ghk", "del", "chkpnt") if f"_t_{name}`" in sql}
        drops = sql.startswith("DROP") and not own & {each.table for each in tables.tables}
        tables, step = after_statement(tables, sql, "shop", has_xid=not drops)
        assert step is None or not step.hides(T), sql
        if "TRIGGER" not in sql and not (step is not None and step.swaps):
            assert all(step is not None and step.hides(table) for table in own), sql


def _of(suffix: str) -> TableId:
    return TableId("shop", f"_t_{suffix}")


def test_the_tables_of_gh_ost_are_known_from_their_creation() -> None:
    run = gh_ost(drops_old=False)
    swap = next(number for number, sql in enumerate(run) if sql.startswith("rename"))
    before, _ = _run(*run[:swap])
    assert _names(before) == {"_t_ghc", "_t_gho"}
    after, steps = _run(run[swap], before=before)
    assert _names(after) == {"_t_ghc", "_t_del"}
    assert steps[0] is not None
    assert steps[0].keeps(T)
    assert steps[0].hides(TableId("shop", "_t_del"))
    assert not steps[0].hides(T)


def test_a_copy_of_pt_osc_is_known_from_its_first_trigger() -> None:
    create, alter, trigger, *_ = pt_osc()
    tables, steps = _run(create, alter)
    assert _names(tables) == set()
    assert steps == [None, None]
    tables, _ = _run(trigger, before=tables)
    assert _names(tables) == {"_t_new"}


def test_a_copy_of_spirit_is_known_from_its_checkpoint_table() -> None:
    drop, create, alter, *rest = spirit()
    tables, steps = _run(drop, create, alter)
    assert _names(tables) == set()
    assert all(step is not None and step.hides(TableId("shop", "_t_new")) for step in steps[1:])
    tables, _ = _run(*rest[:2], before=tables)
    assert _names(tables) == {"_t_new", "_t_chkpnt"}


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE _x_new (id INT PRIMARY KEY)",
        "CREATE TABLE _x_new LIKE x",
        "CREATE TABLE _x_old LIKE x",
        "CREATE TABLE _x_gho LIKE x",
        "CREATE TABLE _x_gho (id INT PRIMARY KEY)",
        "CREATE TABLE _x_ghc (id INT PRIMARY KEY)",
        "CREATE TABLE _x_del (id INT PRIMARY KEY)",
        "CREATE TABLE _x_chkpnt (id INT PRIMARY KEY)",
        "CREATE TABLE _x_new LIKE other.x",
        "CREATE TRIGGER mine AFTER INSERT ON x FOR EACH ROW REPLACE INTO _x_new (id) VALUES (NEW.id)",
        "CREATE TRIGGER pt_osc_shop_y_ins AFTER INSERT ON x FOR EACH ROW REPLACE INTO _x_new (id) VALUES (NEW.id)",
        "CREATE TEMPORARY TABLE _x_gho LIKE x",
    ],
)
def test_a_name_alone_proves_nothing(sql: str) -> None:
    tables, _ = _run(sql)
    assert not _names(tables)


def test_a_real_table_with_such_a_name_takes_a_place_as_any_table_does() -> None:
    tables, steps = _run(
        "CREATE TABLE _x_new LIKE x",
        "INSERT INTO _x_new SELECT * FROM x",
        "RENAME TABLE x TO _x_old, _x_new TO x",
    )
    assert not _names(tables)
    assert not _swaps(steps)
    assert steps[2] is None or not steps[2].keeps(TableId("shop", "x"))


def test_a_revert_is_one_more_alter() -> None:
    tables, steps = _run(*gh_ost(drops_old=False), *revert())
    assert [text for _, _, text in _swaps(steps)] == ["ALTER TABLE `shop`.`t` ADD n INT", ""]
    assert _names(tables) == {"_t_rev_del"}


def test_an_old_table_that_a_person_renames_back_is_no_swap_of_a_tool() -> None:
    _, steps = _run(*gh_ost(drops_old=False), "RENAME TABLE t TO t_bad, _t_del TO t")
    assert len(_swaps(steps)) == 1
    assert steps[-1] is None or not steps[-1].keeps(T)


def test_a_two_step_cut_over_that_fails_in_the_middle_changes_nothing() -> None:
    half = next(number for number, sql in enumerate(GH_OST_TWO_STEP) if "rename `_t_del`" in sql)
    tables, steps = _run(*GH_OST_TWO_STEP[: half + 1], "alter /* gh-ost */ table `shop`.`_t_del` rename `t`")
    assert not _swaps(steps)
    assert not tables.away
    assert (first := steps[half]) is not None
    assert first.keeps(T)
    assert steps[-1] is not None
    assert steps[-1].keeps(T)
    assert steps[-1].hides(T)
    assert _names(tables) == {"_t_ghc", "_t_gho"}


def test_a_copy_without_its_triggers_is_no_certain_swap() -> None:
    run = pt_osc()
    swap = next(number for number, sql in enumerate(run) if sql.startswith("RENAME"))
    _, steps = _run(*run[:swap], "DROP TRIGGER IF EXISTS `shop`.`pt_osc_shop_t_ins`", run[swap])
    assert not _swaps(steps)


def test_a_person_swaps_the_copy_that_pt_osc_left_with_its_triggers() -> None:
    run = pt_osc()
    swap = next(number for number, sql in enumerate(run) if sql.startswith("RENAME"))
    _, steps = _run(*run[:swap], "RENAME TABLE t TO _t_old, _t_new TO t")
    assert len(_swaps(steps)) == 1


def test_drop_swap_hides_the_drop() -> None:
    run = pt_osc()
    swap = next(number for number, sql in enumerate(run) if sql.startswith("RENAME"))
    tables, steps = _run(*run[:swap], "DROP TABLE IF EXISTS `shop`.`t` /* generated by server */")
    assert steps[-1] is not None
    assert steps[-1].hides(T)
    assert steps[-1].keeps(T)
    assert tables.away == (T,)
    tables, steps = _run("RENAME TABLE `shop`.`_t_new` TO `shop`.`t`", before=tables)
    assert [table for table, _, _ in _swaps(steps)] == [T]
    assert tables == NOTHING


def test_drop_swap_hides_the_drop_beside_a_copy_that_an_earlier_run_has_left() -> None:
    run = pt_osc()
    swap = next(number for number, sql in enumerate(run) if sql.startswith("RENAME"))
    left = "create /* gh-ost */ table `shop`.`_t_gho` like `shop`.`t`"
    _, steps = _run(left, *run[:swap], "DROP TABLE IF EXISTS `shop`.`t`", "RENAME TABLE `shop`.`_t_new` TO `shop`.`t`")
    assert steps[-2] is not None
    assert steps[-2].hides(T)
    assert [table for table, _, _ in _swaps(steps)] == [T]


def test_a_drop_that_checks_foreign_keys_is_no_drop_swap() -> None:
    run = pt_osc()
    swap = next(number for number, sql in enumerate(run) if sql.startswith("RENAME"))
    tables, _ = _run(*run[:swap])
    tables, steps = _run("DROP TABLE IF EXISTS t", "RENAME TABLE _t_new TO t", before=tables, foreign_key_checks=True)
    assert steps[0] is None or not steps[0].hides(T)
    assert not tables.away
    assert not _swaps(steps)


def test_a_swap_of_spirit_is_known_whatever_the_spelling_of_the_database() -> None:
    run = [sql.replace("`shop`", "`SHOP`") if sql.startswith("RENAME") else sql for sql in spirit()]
    assert run != spirit()
    _, steps = _run(*run)
    assert len(_swaps(steps)) == 1


def test_a_create_that_has_made_nothing_makes_no_copy() -> None:
    tables, step = after_statement(NOTHING, "CREATE TABLE IF NOT EXISTS _t_new LIKE t", "shop", has_xid=False)
    assert (tables, step) == (NOTHING, None)


def test_a_drop_of_a_table_that_no_tool_alters_is_a_drop() -> None:
    assert _run("DROP TABLE IF EXISTS `shop`.`t`") == (NOTHING, [None])


def test_alterations_that_cannot_be_given_leave_the_text_of_the_rename() -> None:
    create = "create /* gh-ost */ table `shop`.`_t_gho` like `shop`.`t`"
    swap = "rename /* gh-ost */ table `shop`.`t` to `shop`.`_t_del`, `shop`.`_t_gho` to `shop`.`t`"
    long = f"alter /* gh-ost */ table `shop`.`_t_gho` COMMENT '{'x' * 70_000}'"
    _, steps = _run(create, long, swap)
    assert [text for _, _, text in _swaps(steps)] == [""]


def test_names_that_a_tool_cuts_to_64_characters_are_known() -> None:
    table = "t" * 63
    ghost = f"_{'t' * 59}_gho"
    tables, steps = _run(
        f"create /* gh-ost */ table `shop`.`{ghost}` like `shop`.`{table}`",
        f"rename /* gh-ost */ table `shop`.`{table}` to `shop`.`_{'t' * 59}_del`, `shop`.`{ghost}` to `shop`.`{table}`",
    )
    assert [swapped.table for swapped, _, _ in _swaps(steps)] == [table]
    assert _names(tables) == {f"_{'t' * 59}_del"}


#: A name that the tools cut between two characters, whether they count characters or bytes.
LONG = f"{'t' * 49}表表tttt表表表"


def _cut(run: list[str], *, by_bytes: bool) -> list[str]:
    """Return the run on the table `LONG` with the tool's names cut to 64 bytes or characters."""
    for suffix in ("gho", "ghc", "del", "rev_del", "new", "old", "chkpnt"):
        length, whole = 64 - len(suffix) - 1, f"_{LONG}"
        name = whole.encode()[:length].decode() if by_bytes else whole[:length]
        run = [sql.replace(f"`{whole}_{suffix}`", f"`{name}_{suffix}`") for sql in run]
    return run


@pytest.mark.parametrize("by_bytes", [True, False], ids=["bytes", "characters"])
@pytest.mark.parametrize(
    ("run", "swaps"),
    [([*gh_ost(table=LONG, drops_old=False), *revert(table=LONG)], 2), (spirit(table=LONG), 1)],
    ids=["gh-ost", "spirit"],
)
def test_names_beyond_ascii_may_be_cut_by_bytes_and_by_characters(run: list[str], swaps: int, by_bytes: bool) -> None:
    cut = _cut(run, by_bytes=by_bytes)
    assert cut != run
    _, steps = _run(*cut)
    assert [table.table for table, _, _ in _swaps(steps)] == [LONG] * swaps


def test_a_drop_that_did_nothing_is_hidden_only_under_a_name_of_a_tool() -> None:
    for name, hides in {"_t_ghc": True, "_t_del": True, "_t_new": True, "t": False}.items():
        _, step = after_statement(NOTHING, f"DROP TABLE IF EXISTS {name}", "shop", has_xid=False)
        assert (step is not None and step.hides(TableId("shop", name))) is hides
        assert after_statement(NOTHING, f"DROP TABLE IF EXISTS {name}", "shop", has_xid=True) == (NOTHING, None)


def test_a_dropped_database_takes_the_tables_with_it() -> None:
    swap = next(number for number, sql in enumerate(GH_OST) if sql.startswith("rename"))
    tables, _ = _run(*GH_OST[:swap], "DROP DATABASE shop")
    assert tables == NOTHING


def _until_swap(run: list[str]) -> list[str]:
    """Return the statements before the first rename."""
    return run[: next(number for number, sql in enumerate(run) if " rename" in f" {sql.lower()}")]


@pytest.mark.parametrize(
    "statements",
    [
        [*_until_swap(GH_OST), "RENAME TABLE t TO _t_del, _t_gho TO t"],
        [*_until_swap(GH_OST), "rename /* gh-ost */ table t to t_old, _t_gho to t"],
        [*_until_swap(SPIRIT), "DROP TABLE _t_chkpnt", "RENAME TABLE t TO _t_old, _t_new TO t"],
        [*_until_swap(SPIRIT), "RENAME TABLE t TO t_old, _t_new TO t"],
        [*_until_swap(PT_OSC), "RENAME TABLE t TO t_old, _t_new TO t"],
        ["CREATE TABLE t2 (id INT)", *_until_swap(GH_OST), "RENAME TABLE _t_gho TO t2"],
    ],
)
def test_a_rename_that_is_not_certainly_the_tools_is_a_rename(statements: list[str]) -> None:
    _, steps = _run(*statements)
    assert not _swaps(steps)
    assert steps[-1] is None or not steps[-1].kept


def test_an_old_table_comes_back_as_a_swap_only_in_a_revert() -> None:
    run = gh_ost(drops_old=False)
    _, steps = _run(*run, "rename /* gh-ost */ table t to _t_20260101000000_del, _t_del to t")
    assert len(_swaps(steps)) == 1


TWO_STEP_REVERT = [
    *changelog(),
    "alter /* gh-ost */ table `shop`.`t` rename `_t_rev_del`",
    "alter /* gh-ost */ table `shop`.`_t_del` rename `t`",
]


def test_a_revert_in_two_steps_is_one_more_alter() -> None:
    tables, steps = _run(*gh_ost(drops_old=False), *TWO_STEP_REVERT[1:])
    assert len(_swaps(steps)) == 2
    assert not tables.away


@pytest.mark.parametrize("back", [revert()[:-1], TWO_STEP_REVERT], ids=["atomic", "two-step"])
def test_a_revert_with_names_after_something_else_is_one_more_alter(back: list[str]) -> None:
    """--force-table-names."""
    run = [sql.replace("`_t_", "`_m42_") for sql in (*gh_ost(drops_old=False), *back)]
    tables, steps = _run(*run)
    assert [text for _, _, text in _swaps(steps)] == ["ALTER TABLE `shop`.`t` ADD n INT", ""]
    assert not tables.away
    assert _names(tables) == {"_m42_ghc", "_m42_rev_del"}
    assert steps[-1] is not None
    assert steps[-1].keeps(T)
    # The revert alone was told another name.
    _, steps = _run(*gh_ost(drops_old=False), *(sql.replace("`_m42_del`", "`_t_del`") for sql in run[-len(back) :]))
    assert len(_swaps(steps)) == 2


@pytest.mark.parametrize("name", ["t", "m42"])
@pytest.mark.parametrize("back", [revert(), [*TWO_STEP_REVERT, revert()[-1]]], ids=["atomic", "two-step"])
def test_a_revert_of_a_run_that_nobody_saw_is_an_alter_with_perhaps_other_rows(back: list[str], name: str) -> None:
    tables, steps = _run(*(sql.replace("`_t_", f"`_{name}_") for sql in back))
    assert _swaps(steps) == [(T, "gh-ost", "")]
    assert _names(tables) == {f"_{name}_rev_del"}
    assert not tables.away
    [swap] = [step for step in steps if step is not None and step.swaps]
    # Nobody knows whether the table was emptied behind the first swap.
    assert not swap.keeps(T)
    assert not swap.hides(T)
    # The former table was captured like any other, so its name is shown.
    assert not swap.hides(TableId("shop", f"_{name}_del"))


@pytest.mark.parametrize(
    "back",
    [
        revert()[1:],
        [revert()[0], "RENAME TABLE t TO _t_rev_del, _t_del TO t"],
        [revert()[0], "rename /* gh-ost */ table t to _t_bad_del, _t_del to t"],
        [*changelog(table="x"), revert()[-2]],
        [*TWO_STEP_REVERT[:1], *TWO_STEP_REVERT[2:]],
        TWO_STEP_REVERT[1:],
    ],
)
def test_a_former_table_that_nobody_knows_comes_back_only_by_a_certain_revert(back: list[str]) -> None:
    _, steps = _run(*back)
    assert not _swaps(steps)
    assert all(step is None or not step.kept for step in steps)


def test_the_changelog_of_another_table_proves_nothing() -> None:
    tables, _ = _run(GH_OST[1], "CREATE TABLE _x_gho LIKE x")
    assert _names(tables) == {"_t_ghc"}
    tables, _ = _run("CREATE TABLE _t_gho LIKE t", before=tables)
    assert _names(tables) == {"_t_ghc", "_t_gho"}


def test_a_table_that_is_created_is_not_away_and_not_the_tools_any_more() -> None:
    half = next(number for number, sql in enumerate(GH_OST_TWO_STEP) if "rename `_t_del`" in sql)
    tables, _ = _run(*GH_OST_TWO_STEP[: half + 1])
    assert tables.away == (T,)
    tables, _ = _run("CREATE TABLE t (id INT)", "CREATE TABLE _t_gho (id INT)", before=tables)
    assert not tables.away
    assert "_t_gho" not in _names(tables)


@pytest.mark.parametrize("table", ["doc_rev", "ev_20240101000000", "_events", "t_old"])
@pytest.mark.parametrize("tool", ["gh-ost", "two-step", "pt-osc", "spirit"])
def test_a_name_that_ends_or_begins_as_a_tools_do_is_no_obstacle(table: str, tool: str) -> None:
    run = {
        "gh-ost": gh_ost(table=table),
        "two-step": gh_ost(table=table, two_step=True),
        "pt-osc": pt_osc(table=table),
        "spirit": spirit(table=table),
    }[tool]
    tables, steps = _run(*run)
    assert [(swapped.table, text) for swapped, _, text in _swaps(steps)] == [
        (table, f"ALTER TABLE `shop`.`{table}` ADD n INT")
    ]
    assert not tables.away


@pytest.mark.parametrize("two_step", [False, True], ids=["atomic", "two-step"])
def test_gh_ost_may_name_its_tables_after_something_else(two_step: bool) -> None:
    run = [sql.replace("`_t_", "`_m42_") for sql in gh_ost(two_step=two_step)]
    tables, steps = _run(*run)
    assert [text for _, _, text in _swaps(steps)] == ["ALTER TABLE `shop`.`t` ADD n INT"]
    assert not tables.away


@pytest.mark.parametrize(("other", "is_fed"), [("t_items", True), ("t", False)])
def test_only_the_triggers_of_the_table_itself_count(other: str, is_fed: bool) -> None:
    run = _until_swap(PT_OSC)
    drops = [f"DROP TRIGGER IF EXISTS `shop`.`pt_osc_shop_{other}_{event}`" for event in ("del", "upd", "ins")]
    _, steps = _run(*run, *drops, PT_OSC[len(run)])
    assert len(_swaps(steps)) == is_fed


@pytest.mark.parametrize("prefix", ["pt_osc_shop_gr__n", "pt_osc_shop_grün"], ids=["bytes", "text"])
def test_a_table_with_letters_beyond_ascii_is_followed_by_triggers_of_both_names(prefix: str) -> None:
    run = [sql.replace("pt_osc_shop_grün", prefix) for sql in pt_osc(table="grün")]
    _, steps = _run(*run)
    assert [swapped.table for swapped, _, _ in _swaps(steps)] == ["grün"]
    drops = [f"DROP TRIGGER IF EXISTS `shop`.`{prefix}_{event}`" for event in ("del", "upd", "ins")]
    until = _until_swap(run)
    _, steps = _run(*until, *drops, run[len(until)])
    assert not _swaps(steps)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    "statements",
    [
        ["TRUNCATE TABLE t"],
        ["TRUNCATE shop.T"],
        ["DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY)"],
        ["RENAME TABLE t TO t_2025", "CREATE TABLE t LIKE t_2025"],
        ["RENAME TABLE t TO t_2025, u TO t"],
        ["ALTER TABLE t RENAME TO t_2025", "CREATE TABLE t LIKE t_2025"],
        ["ALTER TABLE t TRUNCATE PARTITION p0"],
        ["ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u"],
        ["ALTER TABLE u EXCHANGE PARTITION p0 WITH TABLE t WITHOUT VALIDATION"],
        ["ALTER TABLE t IMPORT TABLESPACE"],
        ["ALTER TABLE t DISCARD TABLESPACE"],
        ["ALTER TABLE t DISCARD PARTITION p0 TABLESPACE"],
        ["ALTER TABLE t drop /* the oldest */ partition p0"],
        ["ALTER TABLE t /*!50100 DROP PARTITION p0 */"],
        ["ALTER TABLE t DROP/*!50100 PARTITION*/ p0"],
        ["ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN (9) COMMENT = 'never closed)"],
    ],
    ids=" ".join,
)
def test_a_copy_of_a_table_that_has_other_rows_since_is_no_certain_swap(run: list[str], statements: list[str]) -> None:
    until = _until_swap(run)
    _, steps = _run(*until, *statements, *run[len(until) :])
    assert not _swaps(steps)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    "clauses",
    [
        "DROP INDEX by_partition",
        "DROP COLUMN `partition`",
        "DROP tablespace",
        "ADD INDEX i (a) COMMENT 'tablespace'",
        "ADD INDEX i (a) COMMENT 'DROP PARTITION p0'",
        "ADD INDEX i (a) /* DROP PARTITION p0 */",
        "ALTER partition_no DROP DEFAULT",
        "ADD PARTITION (PARTITION p1 VALUES LESS THAN (9) COMMENT = 'dropbox')",
        "TABLESPACE innodb_file_per_table",
        "RENAME COLUMN dropped TO partitions",
    ],
)
def test_a_statement_that_only_names_partitions_leaves_the_rows(run: list[str], clauses: str) -> None:
    until = _until_swap(run)
    _, steps = _run(*until, f"ALTER TABLE t {clauses}", *run[len(until) :])
    assert len(_swaps(steps)) == 1
    _, steps = _run(*gh_ost(drops_old=False), f"ALTER TABLE t {clauses}", *revert())
    assert len(_swaps(steps)) == 2


@pytest.mark.parametrize("statement", ["TRUNCATE TABLE t", "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u"])
def test_a_revert_to_a_table_that_has_other_rows_since_is_no_certain_swap(statement: str) -> None:
    back = revert()
    _, steps = _run(*gh_ost(drops_old=False), *back)
    assert len(_swaps(steps)) == 2
    _, steps = _run(*gh_ost(drops_old=False), statement, *back)
    assert len(_swaps(steps)) == 1
    _, steps = _run(*gh_ost(drops_old=False), *_until_swap(back), statement, *back[len(_until_swap(back)) :])
    assert len(_swaps(steps)) == 1
    # A run since has swapped in a table with the same rows.
    _, steps = _run(*gh_ost(drops_old=False), statement, *gh_ost(drops_old=False), *back)
    assert len(_swaps(steps)) == 3


@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("_spirit_checkpoint", "copier_watermark TEXT"),
        ("_spirit_move_checkpoint", "copier_watermark TEXT"),
        ("_spirit_sync_checkpoint", "copier_watermark TEXT"),
        ("_spirit_sentinel", "id INT"),
        ("_spirit_move_revert", "id INT"),
    ],
)
def test_the_tables_by_which_spirit_is_controlled_are_its_own(name: str, definition: str) -> None:
    made, steps = _run(f"CREATE TABLE IF NOT EXISTS {name} ({definition})")
    assert _names(made) == {name}
    assert steps[0] is not None
    assert steps[0].hides(TableId("shop", name))
    # A DROP that found nothing is the tool's, too.
    _, step = after_statement(NOTHING, f"DROP TABLE IF EXISTS {name}", "shop", has_xid=False)
    assert step is not None
    assert step.hides(TableId("shop", name))


def test_a_test_on_a_replica_is_two_swaps_and_its_copy_stays_the_tools() -> None:
    swap_back = "rename /* gh-ost */ table `shop`.`t` to `shop`.`_t_gho`, `shop`.`_t_del` to `shop`.`t`"
    run = gh_ost(drops_old=False)
    tables, steps = _run(*run[:-1], swap_back, run[-1])

    assert [(table, text) for table, _, text in _swaps(steps)] == [(T, "ALTER TABLE `shop`.`t` ADD n INT"), (T, "")]
    assert _names(tables) == {"_t_gho"}
    back = steps[len(run) - 1]
    assert back is not None
    assert back.hides(TableId("shop", "_t_gho"))
    # The next run drops the copy, and makes another one.
    _, steps = _run("DROP TABLE IF EXISTS `shop`.`_t_gho` /* generated by server */", *run, before=tables)
    assert len(_swaps(steps)) == 1


def test_a_dropped_table_does_not_wait_for_a_copy_that_is_gone() -> None:
    drop = "DROP TABLE IF EXISTS `shop`.`t` /* generated by server */"
    tables, _ = _run(*_until_swap(PT_OSC), drop)
    assert tables.away == (T,)
    for sql in ("DROP TABLE `shop`.`_t_new`", "RENAME TABLE `shop`.`_t_new` TO `shop`.`kept`"):
        gone, _ = _run(sql, before=tables)
        assert not gone.away
    formers = gh_ost(drops_old=False)
    _, steps = _run(*formers, *_until_swap(PT_OSC), drop, "RENAME TABLE `shop`.`_t_del` TO `shop`.`t`")
    assert steps[-1] is None or not steps[-1].keeps(T)


def test_a_cut_over_that_fails_behind_an_earlier_revert_changes_nothing() -> None:
    reverted = [*gh_ost(drops_old=False), *revert()]
    half = [sql for sql in GH_OST_TWO_STEP if "rename `_t_del`" in sql]
    until = GH_OST_TWO_STEP[: GH_OST_TWO_STEP.index(half[0])]
    tables, steps = _run(*reverted, *until, *half, "alter /* gh-ost */ table `shop`.`_t_del` rename `t`")
    assert len(_swaps(steps)) == 2
    assert not tables.away
