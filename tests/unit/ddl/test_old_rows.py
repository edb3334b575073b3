"""Tests of `ddl.old_rows`: which statements give old rows values that no consumer can know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.ddl.column_origins import origins_behind, read_alteration
from incsnap.ddl.conversions import keeps_values
from incsnap.ddl.old_rows import DefinedColumn, DefinedTable, Origins, changed_columns, unknown_values
from incsnap.events import Session

ID = DefinedColumn("id", "int", nullable=False, counted=True)
A = DefinedColumn("a", "int")
B = DefinedColumn("b", "varchar(10)", charset="utf8mb3")
BEFORE = DefinedTable((ID, A, B), ("id",))
SESSION = Session("shop", 0)


def behind(*columns: DefinedColumn, key: tuple[str, ...] = ("id",)) -> DefinedTable:
    return DefinedTable(columns, key)


def origins(*statements: str) -> Origins | None:
    known: Origins | None = {}
    for sql in statements:
        known = origins_behind(known, read_alteration(sql, SESSION))
    return known


NEW = DefinedColumn("n", "int")


@pytest.mark.parametrize(
    ("column", "is_known"),
    [
        (NEW, True),
        (replace(NEW, default="7"), True),
        (replace(NEW, nullable=False, default="7"), True),
        (replace(NEW, nullable=False), False),
        (replace(NEW, type="varchar(36)", default="uuid()", computed=True), False),
        (replace(NEW, type="timestamp", default="CURRENT_TIMESTAMP", computed=True), False),
        (replace(NEW, generated="(`a` + 1)"), False),
        (replace(NEW, nullable=False, counted=True), False),
    ],
)
def test_a_new_column_is_known_only_by_null_or_a_constant_default(column: DefinedColumn, is_known: bool) -> None:
    after = behind(ID, A, column, B)
    assert (unknown_values(BEFORE, after, {"n": None}) == ()) == is_known
    assert changed_columns(BEFORE, after, {"n": None}) == ("column n is new",)


@pytest.mark.parametrize(
    ("column", "is_known"),
    [
        (replace(A, type="bigint"), True),
        (replace(A, type="smallint"), False),
        (replace(A, nullable=False), False),
        (replace(A, default="5"), True),
        (replace(A, generated="(`id` * 2)"), False),
        (replace(A, counted=True), False),
        (replace(A, type="varchar(10)", charset="utf8mb4"), False),
    ],
)
def test_a_converted_column_is_known_only_if_each_value_stays(column: DefinedColumn, is_known: bool) -> None:
    assert (unknown_values(BEFORE, behind(ID, column, B), {}) == ()) == is_known


E = DefinedColumn("e", "enum('a','b')", charset="utf8mb4")


@pytest.mark.parametrize(
    ("base", "is_known"),
    [
        (E, True),
        (replace(E, default="a"), True),
        (replace(E, type="enum('a','b','c')"), True),
        (replace(E, type="enum('b','a')"), False),
        (replace(E, type="enum('x','a','b')"), False),
        (replace(E, charset="utf8mb3"), False),
        (replace(E, nullable=False), False),
    ],
)
@pytest.mark.parametrize("expression", ["(`e` + 0)", "(`E` + 0)"])
@pytest.mark.parametrize("is_captured", [lambda _: True, lambda name: name != "e"])
def test_a_generated_column_is_unknown_behind_another_type_of_a_column_that_it_names(
    base: DefinedColumn, is_known: bool, expression: str, is_captured: Callable[[str], bool]
) -> None:
    generated = DefinedColumn("g", "int", generated=expression)
    derived = DefinedColumn("h", "int", generated="(`g` * 2)")
    other = DefinedColumn("i", "int", generated="(`a` + 1)")
    reasons = unknown_values(
        behind(ID, A, E, generated, derived, other),
        behind(ID, A, base, generated, derived, other),
        {},
        is_captured=is_captured,
    )
    of_generated = [reason for reason in reasons if not reason.startswith("column e ")]
    expected = ["column g is generated from e", "column h is generated from g"]
    assert [reason.partition(",")[0] for reason in of_generated] == ([] if is_known else expected)


@pytest.mark.parametrize(("type_", "is_known"), [("varchar(20)", True), ("varchar(5)", False), ("char(20)", False)])
def test_a_generated_column_is_known_behind_a_longer_text_that_it_names(type_: str, is_known: bool) -> None:
    name = DefinedColumn("n", "varchar(11)", charset="utf8mb4")
    generated = DefinedColumn("g", "varchar(30)", generated="upper(`n`)", charset="utf8mb4")
    reasons = unknown_values(behind(ID, name, generated), behind(ID, replace(name, type=type_), generated), {})
    assert ([reason for reason in reasons if reason.startswith("column g ")] == []) == is_known


def test_a_column_that_only_changes_back_keeps_its_values() -> None:
    nullable = replace(A, nullable=False)
    assert unknown_values(behind(ID, nullable), behind(ID, A), {}) == ()
    plain, generated = A, replace(A, generated="(`id` + 1)")
    assert unknown_values(behind(ID, generated), behind(ID, plain), {}) == ()


def test_a_generated_column_that_becomes_an_ordinary_one_is_empty_in_a_copy() -> None:
    before, after = behind(ID, replace(A, generated="(`id` + 1)")), behind(ID, A)
    (reason,) = unknown_values(before, after, {}, is_copied=True)
    assert reason.startswith("column a was generated")
    assert unknown_values(before, before, {}, is_copied=True) == ()


def test_order_default_and_a_dropped_column_tell_nothing_new() -> None:
    assert unknown_values(BEFORE, behind(ID, B, A), {}) == ()
    assert changed_columns(BEFORE, behind(ID, B, replace(A, default="5")), {}) == ()
    assert unknown_values(BEFORE, behind(ID, A), {}) == ()
    assert changed_columns(BEFORE, behind(ID, A), {}) == ("column b is dropped",)


def test_a_renamed_column_is_unknown_and_a_dropped_one_beside_a_new_one_is_not() -> None:
    after = behind(ID, replace(A, name="c"), B)
    assert unknown_values(BEFORE, after, origins("ALTER TABLE t RENAME COLUMN a TO c"))
    assert unknown_values(BEFORE, after, origins("ALTER TABLE t CHANGE A c INT"))
    assert unknown_values(BEFORE, after, origins("ALTER TABLE t DROP a, ADD c INT AFTER id")) == ()
    assert unknown_values(BEFORE, after, origins("ALTER TABLE t DROP a", "ALTER TABLE t ADD c INT AFTER id")) == ()
    (reason,) = unknown_values(BEFORE, after, None)
    assert reason == "column c is new, and may be one of a under a new name"


def test_columns_that_change_places_are_unknown_although_the_definition_stays() -> None:
    two = behind(ID, A, replace(A, name="c"))
    swapped = "ALTER TABLE t RENAME COLUMN a TO c, RENAME COLUMN c TO a"
    assert len(unknown_values(two, two, origins(swapped))) == 2
    assert unknown_values(two, two, origins(swapped, swapped)) == ()
    again = origins("ALTER TABLE t DROP a, ADD a INT NOT NULL AFTER id")
    fresh = behind(ID, replace(A, nullable=False), replace(A, name="c"))
    assert unknown_values(fresh, fresh, {}) == ()
    assert len(unknown_values(fresh, fresh, again)) == 1


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE t DROP a, ADD A INT"],
        ["ALTER TABLE t DROP a", "ALTER TABLE t ADD a INT"],
        ["ALTER TABLE t RENAME COLUMN a TO c, ADD a INT", "ALTER TABLE t DROP c"],
    ],
)
@pytest.mark.parametrize("column", [A, replace(A, default="7"), replace(A, name="A", type="bigint")])
def test_a_new_column_with_the_name_of_a_dropped_one_is_unknown(statements: list[str], column: DefinedColumn) -> None:
    (reason,) = unknown_values(BEFORE, behind(ID, column, B), origins(*statements))

    assert reason.startswith(f"column {column.name} is new, and has the name of a dropped column")


def test_a_column_that_is_renamed_twice_is_found_and_one_that_returns_is_the_same() -> None:
    there = "ALTER TABLE t CHANGE COLUMN a c BIGINT"
    back = "ALTER TABLE t RENAME COLUMN c TO a"
    assert origins(there, "ALTER TABLE t RENAME COLUMN c TO d") == {"d": "a"}
    assert unknown_values(BEFORE, behind(ID, replace(A, type="bigint"), B), origins(there, back)) == ()


def test_another_primary_key_is_unknown_and_a_renamed_column_of_the_key_is_named_once() -> None:
    (reason,) = unknown_values(BEFORE, behind(ID, replace(A, nullable=True), B, key=("a",)), {})
    assert reason == "the key is (a) now, and was (id)"
    named = unknown_values(BEFORE, behind(replace(ID, name="no"), A, B, key=("no",)), {"no": "id"})
    assert len(named) == 1


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t ADD INDEX i (a), ALGORITHM=INPLACE", {}),
        ("CREATE UNIQUE INDEX i ON t (a)", {}),
        ("DROP INDEX i ON t", {}),
        ("ALTER TABLE t MODIFY a BIGINT FIRST", {}),
        ("ALTER TABLE t ADD (n INT, m INT)", {"n": None, "m": None}),
        ("ALTER TABLE t DROP a, ADD a INT", {"a": None}),
        ("RENAME TABLE t TO u, v TO t", None),
        ("ALTER TABLE t SOMETHING NEW", None),
    ],
)
def test_the_origins_of_columns_are_read_or_not_known(sql: str, expected: Origins | None) -> None:
    assert origins(sql) == expected


INTEGERS = {"tinyint(4)": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


@given(st.sampled_from(list(INTEGERS)), st.booleans(), st.sampled_from(list(INTEGERS)), st.booleans())
def test_an_integer_keeps_its_values_only_in_a_type_that_has_all_of_them(
    old: str, old_unsigned: bool, new: str, new_unsigned: bool
) -> None:
    def values(name: str, unsigned: bool) -> tuple[int, int]:
        bits = INTEGERS[name]
        return (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    (low, high), (new_low, new_high) = values(old, old_unsigned), values(new, new_unsigned)
    has_all = new_low <= low and high <= new_high
    becomes_bytes = new_unsigned and new == "bigint" and (old, old_unsigned) != (new, new_unsigned)
    kept = keeps_values(old + " unsigned" * old_unsigned, new + " unsigned" * new_unsigned)
    assert kept == (has_all and not becomes_bytes)


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("tinyint(1)", "tinyint", False),
        ("int(11)", "int", True),
        ("int(5) unsigned zerofill", "int unsigned", True),
        ("decimal(6,2)", "decimal(8,2)", True),
        ("decimal(6,2)", "decimal(8,3)", False),
        ("decimal(6,2)", "decimal(5,2)", False),
        ("float", "double", False),
        ("varchar(10)", "varchar(20)", True),
        ("varchar(20)", "varchar(10)", False),
        ("char(10)", "varchar(10)", True),
        ("varchar(10)", "char(10)", False),
        ("varchar(10)", "text", True),
        ("varchar(10)", "tinytext", False),
        ("text", "longtext", True),
        ("text", "varchar(100)", False),
        ("binary(4)", "binary(8)", False),
        ("varbinary(4)", "varbinary(8)", True),
        ("varbinary(4)", "blob", True),
        ("blob", "tinyblob", False),
        ("varchar(4)", "varbinary(4)", False),
        ("enum('a','b')", "enum('b','a','c')", True),
        ("enum('a','b')", "enum('a')", False),
        ("enum('a,b','it''s')", "enum('it''s','a,b')", True),
        ("set('a','b')", "set('a','x','b')", True),
        ("set('a','b')", "set('b','a')", False),
        ("datetime", "datetime(6)", False),
        ("bit(4)", "bit(8)", False),
        ("int", "varchar(20)", False),
        ("json", "text", False),
    ],
)
def test_types_that_keep_values(before: str, after: str, kept: bool) -> None:
    assert keeps_values(before, after) == kept
    assert keeps_values(before, before)


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("utf8mb3", "utf8mb4", True),
        ("ascii", "utf8mb4", True),
        ("latin1", "utf8mb4", False),
        ("utf8mb4", "utf8mb3", False),
    ],
)
def test_a_character_set_keeps_texts_only_if_utf8mb4_has_it_whole(before: str, after: str, kept: bool) -> None:
    assert keeps_values("varchar(10)", "varchar(10)", before, after) == kept
