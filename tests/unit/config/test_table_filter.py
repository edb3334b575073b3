"""The four lists that say what is captured."""

from __future__ import annotations

import pytest

from incsnap.config.patterns import TableFilter, pattern_problem, split_list
from incsnap.tables import TableId
from signals.resolve import Resolved, resolve


@pytest.mark.parametrize(
    ("chosen", "table", "included"),
    [
        (TableFilter(), "shop.orders", True),
        (TableFilter(), "mysql.user", False),
        (TableFilter(), "performance_schema.x", False),
        (TableFilter(database_include=("shop",)), "shop.orders", True),
        (TableFilter(database_include=("shop",)), "shop2.orders", False),
        (TableFilter(database_exclude=("shop.*",)), "shop2.orders", False),
        (TableFilter(table_include=(r"shop\.ord.*",)), "shop.orders", True),
        (TableFilter(table_include=(r"shop\.ord",)), "shop.orders", False),
        (TableFilter(table_include=("SHOP.ORDERS",)), "shop.orders", True),
        (TableFilter(table_exclude=("shop.tmp_.*",)), "shop.tmp_1", False),
        (TableFilter(database_include=("a",), table_include=("shop.t",)), "shop.t", False),
        (TableFilter(table_include=("a.b",), signal_table=TableId("x", "sig")), "x.sig", True),
        (TableFilter(table_include=(r"\Qa.b\E",)), "a.b", True),
        (TableFilter(table_include=(r"\Qa.b*\E",)), "a.bb", False),
    ],
)
def test_a_table_is_included_by_full_match_without_regard_to_letter_case(
    chosen: TableFilter, table: str, included: bool
) -> None:
    assert chosen.included(TableId.parse(table)) is included


def test_a_list_is_split_at_commas_that_are_not_escaped() -> None:
    assert split_list(r" a.b , c\,d ,, e ") == ("a.b", r"c\,d", "e")


def test_a_pattern_that_is_not_read_as_java_does_is_a_problem() -> None:
    assert pattern_problem(r"a\.(?<n>b|c)\k<n>") is None
    assert pattern_problem(r"\p{Lu}+") is not None
    assert pattern_problem("[a-z&&[^b]]") is None
    assert pattern_problem("(?x)a") is not None
    assert pattern_problem("a{99999999999999999999}") is not None


def test_patterns_without_a_table_are_found() -> None:
    chosen = TableFilter(table_include=("a.b", "a.typo"))
    assert chosen.without_match([TableId("a", "b")]) == ("a.typo",)


def test_tables_have_the_order_of_the_list_that_includes_them() -> None:
    chosen = TableFilter(table_include=(r"shop\.z", r"SHOP\.m.*", "shop.a", r"shop\.(b|mm)"))
    tables = [TableId("shop", name) for name in ("a", "b", "m1", "mm", "other", "z")]

    assert [table.table for table in chosen.in_order(tables)] == ["z", "m1", "mm", "a", "b", "other"]
    assert TableFilter().in_order(tables) == tables


def test_a_database_may_be_included_when_any_of_its_tables_may() -> None:
    chosen = TableFilter(database_include=("a",), signal_table=TableId("s", "sig"))
    assert [chosen.may_include_database(name) for name in ("a", "b", "s", "mysql")] == [True, False, True, False]


def test_thousands_of_names_are_looked_up_and_not_matched_one_by_one() -> None:
    names = tuple(f"shop\\.t{number}" for number in range(5_000))
    chosen = TableFilter(table_include=(*names, "shop.plain", "other\\.t[12]"))
    tables = [TableId("shop", f"T{number}") for number in range(5_000)]

    assert all(chosen.included(table) for table in tables)
    assert chosen.included(TableId("shop", "Plain"))
    assert chosen.included(TableId("other", "t2"))
    assert not chosen.included(TableId("shop", "t5000"))
    assert not chosen.included(TableId("sho", "p.t1"))
    assert not chosen.included(TableId("shop", "\u212a"))
    assert chosen.without_match(tables) == ("shop.plain", "other\\.t[12]")


def test_a_dot_that_is_not_escaped_is_any_character_of_a_name_without_one() -> None:
    chosen = TableFilter(database_include=("my.shop", "other\\.one"))
    assert [chosen.may_include_database(name) for name in ("my-shop", "MY_SHOP", "my.shop", "myshop", "other-one")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert resolve(["my.shop"], ["my.shop", "my-shop.a"]) == Resolved(("my.shop",), ())


def test_a_signal_of_thousands_of_names_is_looked_up_too() -> None:
    names = [f"shop.t{number}" for number in range(5_000)]
    resolved = resolve([name.replace(".", "\\.") for name in names] + names + ["shop.T1", "sho.+"], names)

    assert resolved == Resolved(tuple(names), ("shop.T1",))
