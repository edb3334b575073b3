"""Tests of the definitions that are known after each statement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.ddl.batch_definitions import BatchDefinitions
from incsnap.ddl.online_changes import with_steps
from incsnap.ddl.online_tables import OnlineTables
from incsnap.ddl.statements import schema_change
from incsnap.ddl.table_definition import Definitions, Key, KeyPart, TableDefinition
from incsnap.events import SchemaChange, Session
from incsnap.planner.definition_history import KnownTables, redefines
from incsnap.tables import Column, TableId, TableShape
from tests.support.online_runs import gh_ost

T, U = TableId("shop", "t"), TableId("shop", "u")
SESSION = Session("shop", 0, "utf8mb4", "utf8mb4", "utf8mb4", explicit_timestamps=True)
ID = Column("id", "int", nullable=False)
DEFINITION = TableDefinition(TableShape(T, (ID,), (0,)), "utf8mb4", (Key("PRIMARY", True, (KeyPart("id"),)),))
KNOWN = KnownTables(Definitions({T: DEFINITION}, {"shop": "utf8mb4"}), complete=True)


def statement(
    sql: str, session: Session = SESSION, *, has_xid: bool = False, in_transaction: bool = False
) -> SchemaChange:
    change = schema_change(sql, session.database, sql_mode=session.sql_mode)
    assert change is not None
    return replace(change, session=session, has_xid=has_xid, in_transaction=in_transaction)


def behind(known: KnownTables, *statements: str | SchemaChange) -> KnownTables:
    for each in statements:
        change = statement(each) if isinstance(each, str) else each
        known = known.after(change, lambda table: table.database == "shop", lambda table: table in (T, U), 0)
    return known


def names(known: KnownTables, table: TableId = T) -> list[str] | None:
    shape = known.shape(table)
    return None if shape is None else [column.name for column in shape.columns]


def test_a_statement_that_is_followed_is_to_be_confirmed() -> None:
    known = behind(KNOWN, "ALTER TABLE t ADD a INT", "ALTER TABLE t RENAME COLUMN a TO b")
    assert names(known) == ["id", "b"]
    assert known.unconfirmed == {T}
    assert behind(KNOWN, "ALTER TABLE t COMMENT 'x'") == KNOWN


def test_a_statement_that_is_not_followed_is_remembered_by_its_text() -> None:
    known = behind(KNOWN, "ALTER TABLE t ADD a NOVELTY")
    assert names(known) is None
    assert "ADD a NOVELTY" in known.lost[T]
    assert not behind(known, "DROP TABLE t").lost


def test_the_first_statement_that_was_not_followed_is_the_one_that_is_named() -> None:
    known = behind(KNOWN, "ALTER TABLE t ADD a NOVELTY", "ALTER TABLE t ADD b INT")
    assert "ADD a NOVELTY" in known.lost[T]
    known = behind(known, "DROP TABLE t", "CREATE TABLE t (a NOVELTY)")
    assert "CREATE TABLE" in known.lost[T]


def test_a_surely_absent_table_is_known_after_create_if_not_exists_select() -> None:
    create = statement("CREATE TABLE IF NOT EXISTS u (id INT) START TRANSACTION", in_transaction=True)
    assert names(behind(KNOWN, create), U) == ["id"]
    assert names(behind(replace(KNOWN, complete=False), create), U) is None
    assert names(behind(KNOWN, "CREATE TABLE u (id NOVELTY)", create), U) is None
    assert names(behind(KNOWN, "CREATE TABLE u (a INT)", "DROP TABLE u", create), U) == ["id"]


def test_an_uncaptured_table_may_exist_before_create_if_not_exists_select() -> None:
    other = TableId("shop", "other")
    known = behind(KNOWN, statement("CREATE TABLE IF NOT EXISTS other (id INT) START TRANSACTION", in_transaction=True))
    assert names(known, other) is None
    assert "may have been there" in known.lost[other]
    made = behind(known, statement("CREATE TABLE IF NOT EXISTS other (id INT PRIMARY KEY)", has_xid=True))
    assert names(made, other) == ["id"]
    assert not made.lost


def test_a_text_that_may_be_garbled_is_not_followed() -> None:
    change = statement("ALTER TABLE t RENAME COLUMN id TO é", replace(SESSION, client=""))
    known = KNOWN.after(change, lambda _: True, lambda _: True, 0)
    assert names(known) is None
    assert redefines(replace(change, sql="ALTER TABLE t COMMENT 'é'"), T)


def test_stored_definitions_are_read_back() -> None:
    known = behind(KNOWN, "ALTER TABLE t ADD a INT", "CREATE TABLE u (id NOVELTY)")
    known = replace(known, unread=frozenset({U}))
    assert KnownTables.of(known.stored((), ""), lambda _: True, "") == known
    assert KnownTables.of(known.stored((), ""), lambda table: table == U, "").unread == {U}


def test_a_table_not_captured_before_a_restart_may_exist_before_create_if_not_exists() -> None:
    known = KnownTables.of(KNOWN.stored((), ""), lambda _: True, "other settings")
    assert names(known) == ["id"]
    assert not known.definitions.databases
    create = "CREATE TABLE IF NOT EXISTS u (id INT) CHARSET latin1 START TRANSACTION"
    assert names(behind(known, statement(create, in_transaction=True)), U) is None


def test_columns_that_an_earlier_release_stored_can_be_read_by_and_are_not_followed() -> None:
    known = KnownTables.of(BatchDefinitions(known=(DEFINITION.shape,)), lambda _: True, "")
    assert names(known) == ["id"]
    assert names(behind(known, "ALTER TABLE t COMMENT 'x'", "CREATE INDEX i ON t (id)")) == ["id"]
    assert names(behind(known, "ALTER TABLE t ADD a INT")) is None


def test_a_table_whose_rows_were_left_out_is_read_again_under_its_new_name() -> None:
    known = replace(KNOWN, unread=frozenset({T}))
    assert behind(known, "RENAME TABLE t TO u").unread == {U}
    assert behind(known, "ALTER TABLE t ADD a INT").unread == {T}
    assert not behind(known, "DROP TABLE t").unread


@pytest.mark.parametrize("two_step", [False, True])
def test_rows_that_were_left_out_before_a_tools_swap_are_missing_under_the_same_name(two_step: bool) -> None:
    run = [replace(statement(sql), has_xid=True) for sql in gh_ost(two_step=two_step, drops_old=False)[1:]]
    changes = with_steps(OnlineTables(), run, lambda _: True).changes
    assert any(change.online.keeps(T) for change in changes)
    assert behind(replace(KNOWN, unread=frozenset({T})), *changes).unread == {T}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (3))", False),
        ("CREATE INDEX i ON t (id)", False),
        ("ALTER TABLE T COMMENT 'x', ENGINE = InnoDB", False),
        ("TRUNCATE t", False),
        ("CREATE TABLE IF NOT EXISTS t (id INT)", False),
        ("ALTER TABLE u ADD a INT", False),
        ("ALTER TABLE t MODIFY id INT", True),
        ("CREATE UNIQUE INDEX i ON t (id)", True),
        ("ALTER TABLE T ADD a INT", True),
        ("RENAME TABLE t TO v", True),
        ("CREATE TABLE t (id INT)", True),
        ("DROP TABLE t", True),
        ("DROP DATABASE shop", True),
        ("ALTER TABLE t NOVELTY", True),
    ],
)
def test_a_statement_redefines_a_table_unless_it_leaves_it_whatever_it_was(sql: str, expected: bool) -> None:
    assert redefines(statement(sql), T) is expected


def test_create_if_not_exists_redefines_a_table_that_it_makes() -> None:
    assert redefines(statement("CREATE TABLE IF NOT EXISTS t (id INT)", has_xid=True), T)
