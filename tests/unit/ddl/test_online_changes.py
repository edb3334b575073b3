"""Tests of the statements of a batch with their meaning in online schema changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from incsnap.ddl.online_changes import OnlineBatch, after_change, with_steps
from incsnap.ddl.online_tables import OnlineTables
from incsnap.ddl.statements import schema_change
from incsnap.events import NO_STEP, UNKNOWN, SchemaChange, Session
from incsnap.tables import TableId
from tests.support.online_runs import (
    GH_OST,
    GH_OST_RESUMED,
    GH_OST_TWO_STEP,
    PT_OSC,
    PT_OSC_TRIGGERS,
    SPIRIT,
    gh_ost,
    pt_osc,
    revert,
    spirit,
    spirit_of_several,
)

NOTHING = OnlineTables()
COPY = TableId("shop", "_t_new")
RUNS = {
    "gh-ost": GH_OST,
    "two-step": GH_OST_TWO_STEP,
    "resumed": GH_OST_RESUMED,
    "pt-osc": PT_OSC,
    "triggers": PT_OSC_TRIGGERS,
    "spirit": SPIRIT,
    "several": spirit_of_several(),
}
#: The end of a run with --alter-foreign-keys-method=drop_swap, in place of the RENAME of both tables.
DROP_SWAP = ("DROP TABLE IF EXISTS shop.t", "RENAME TABLE shop._t_new TO shop.t")


def _changes(statements: Sequence[str]) -> list[SchemaChange]:
    """Return the statements as the stream brings them. Each dropped table exists."""
    session = Session("shop", foreign_key_checks=False)
    nothing = SchemaChange(frozenset(), "", "")
    made = [schema_change(sql, "shop") or nothing for sql in statements]
    return [
        SchemaChange(each.tables, each.database, sql, each.truncates, session, has_xid=True)
        for each, sql in zip(made, statements, strict=True)
    ]


def _in_batches(changes: Sequence[SchemaChange], borders: Sequence[int]) -> list[OnlineBatch]:
    """Follow the statements in batches that end at `borders`."""
    tables, begin, batches = NOTHING, 0, []
    for end in (*sorted(borders), len(changes)):
        batches.append(with_steps(tables, changes[begin:end], lambda _: True, changes[end:]))
        tables, begin = batches[-1].tables, end
    return batches


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@given(st.lists(st.integers(0, 12), max_size=5))
def test_the_ends_of_batches_change_nothing(run: list[str], borders: list[int]) -> None:
    changes = _changes([*run, *run])
    whole, parts = _in_batches(changes, []), _in_batches(changes, borders)
    assert [each.online for batch in parts for each in batch.changes] == [each.online for each in whole[0].changes]
    assert parts[-1].tables == whole[-1].tables
    assert [each for batch in parts for each in batch.recognised] == list(whole[0].recognised)


def test_a_copy_is_hidden_before_its_trace_if_the_trace_is_known() -> None:
    create, alter, *rest = _changes(PT_OSC)
    assert all(change.online.hides(COPY) for change in with_steps(NOTHING, [create, alter, *rest], bool).changes[:2])
    assert all(change.online.hides(COPY) for change in with_steps(NOTHING, [create, alter], bool, rest).changes)
    assert not any(change.online.hides(COPY) for change in with_steps(NOTHING, [create, alter], bool).changes)


def test_a_copy_that_was_dropped_before_is_another_table() -> None:
    changes = _changes(["CREATE TABLE shop._t_new (id INT PRIMARY KEY)", "DROP TABLE shop._t_new", *PT_OSC])
    stepped = with_steps(NOTHING, changes, bool).changes
    assert [change.online.hides(COPY) for change in stepped[:3]] == [False, False, True]


@pytest.mark.parametrize("border", [0, 1, 2])
def test_a_table_with_rows_and_no_trace_is_shown(border: int) -> None:
    changes = _changes(["CREATE TABLE shop._t_new LIKE shop.t", "ALTER TABLE shop._t_new RENAME COLUMN a TO b"])
    before = with_steps(NOTHING, changes[:border], bool)
    rest = changes[border:]
    hidden = [change.online.hides(COPY) for change in (*before.changes, *with_steps(before.tables, rest, bool).changes)]
    assert hidden == [True, True]
    stepped = with_steps(before.tables, rest, bool, written={COPY.folded}).changes
    assert not any(change.online.hides(COPY) for change in stepped)
    drop = _changes(["DROP TABLE shop._t_new"])
    stepped = with_steps(before.tables, [*rest, *drop], bool, written={COPY.folded}).changes
    assert not any(change.online.hides(COPY) for change in stepped)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_rows_of_a_copy_that_has_a_trace_show_nothing(run: list[str]) -> None:
    changes = _changes(run)
    written = {f"shop._t_{ending}" for ending in ("gho", "new")}
    assert with_steps(NOTHING, changes, bool, written=written) == with_steps(NOTHING, changes, bool)


@pytest.mark.parametrize(
    ("run", "former"),
    [
        (GH_OST, ["_t_del"]),
        (GH_OST_TWO_STEP, ["_t_del"]),
        (PT_OSC, ["_t_old"]),
        (SPIRIT, ["_t_old"]),
        ([*gh_ost(drops_old=False), *revert()], ["_t_del", "_t_rev_del"]),
        ([*PT_OSC[:5], *DROP_SWAP], [None]),
        ([*gh_ost(drops_old=False), *PT_OSC[:5], *DROP_SWAP], ["_t_del", None]),
    ],
)
def test_a_swap_names_the_former_table(run: list[str], former: list[str | None]) -> None:
    changes = _changes(run)
    expected = [None if name is None else TableId("shop", name) for name in former]
    borders: Sequence[int]
    for borders in ((), range(1, len(changes))):
        swaps = [swap for batch in _in_batches(changes, borders) for swap in batch.swaps]
        assert [(swap.table, swap.former) for swap in swaps] == [(TableId("shop", "t"), each) for each in expected]


@pytest.mark.parametrize(
    ("sql", "is_away"),
    [
        ("CREATE TABLE t AS SELECT * FROM _t_del", False),
        ("create table if not exists `shop`.`T` (id int primary key)", False),
        ("CREATE TABLE t2 AS SELECT * FROM _t_del", True),
        ("CREATE TEMPORARY TABLE t (id INT)", True),
    ],
)
def test_a_table_that_is_created_in_a_transaction_is_not_away(sql: str, is_away: bool) -> None:
    first_half = next(number for number, sql in enumerate(GH_OST_TWO_STEP) if " rename " in sql)
    tables = with_steps(NOTHING, _changes(GH_OST_TWO_STEP[: first_half + 1]), lambda _: True).tables
    assert tables.away == (TableId("shop", "t"),)
    [created] = _changes([sql])
    batch = with_steps(tables, [replace(created, in_transaction=True, has_xid=False)], lambda _: True)
    assert bool(batch.tables.away) == is_away
    assert batch.tables.names() == tables.names()
    assert all(each.is_fed for each in batch.tables.tables) == is_away
    assert batch.changes[0].online == NO_STEP


def test_a_table_that_is_created_in_a_transaction_is_no_tools() -> None:
    tables = with_steps(NOTHING, _changes(gh_ost(drops_old=False)), lambda _: True).tables
    assert tables.has("shop._t_del")
    [created] = _changes(["CREATE TABLE _t_del AS SELECT * FROM t"])
    batch = with_steps(tables, [replace(created, in_transaction=True, has_xid=False)], lambda _: True)
    assert not batch.tables.has("shop._t_del")


def test_tables_of_databases_that_nobody_watches_are_not_followed() -> None:
    for run in RUNS.values():
        tables = NOTHING
        for change in _changes(run):
            tables, _ = after_change(tables, change, lambda database: database != "shop")
            assert tables is NOTHING


#: Statements of all tools about three tables, and statements of people about the same names.
_POOL = [
    *(sql for table in ("t", "u") for run in (gh_ost, pt_osc, spirit) for sql in run("shop", table)),
    *gh_ost(two_step=True, drops_old=False),
    *revert(),
    *spirit_of_several(),
    *(f"CREATE TABLE _{table}_{ending} (id INT)" for table in "tu" for ending in ("new", "gho", "old", "del")),
    *(f"CREATE TABLE _{table}_{ending} LIKE {table}" for table in "tu" for ending in ("new", "gho", "old", "del")),
    "RENAME TABLE t TO x, u TO t, x TO u",
    "RENAME TABLE t TO _t_old, _t_new TO t",
    "ALTER TABLE t RENAME _t_del",
    "DROP TABLE t",
    "DROP TABLE IF EXISTS t",
    "CREATE TABLE t (id INT)",
    "DROP DATABASE shop",
    "this is no statement `",
]


@given(st.lists(st.sampled_from(_POOL), max_size=25))
@example(revert())
def test_any_order_of_statements_keeps_the_rules(statements: list[str]) -> None:
    changes = _changes(statements)
    reader = NOTHING  # the stream's reader follows every statement, the planner those that change something
    brought = []
    for change in changes:
        before = reader
        reader, _ = after_change(reader, change, lambda _: True)
        if reader is not before:
            brought.append(change)
    planner = with_steps(NOTHING, brought, lambda _: True).tables
    assert planner == reader
    batch = with_steps(NOTHING, changes, lambda _: True)
    assert batch.tables == reader
    for change in batch.changes:
        for table, tool, altered_by in change.online.swaps:
            assert change.touches(table)
            # A revert of a swap that is not known may bring older rows.
            assert change.online.keeps(table) or (altered_by == UNKNOWN and "_t_rev_del" in change.sql)
            assert not change.online.hides(table)
            assert tool != "gh-ost" or "/* gh-ost */" in change.sql
    for each in reader.certain():
        own = [each.table.table, *([each.of.table] if each.of is not None else [])]
        assert all(name in " ".join(statements) for name in own)
        assert each.table.table not in ("t", "u", "x")
