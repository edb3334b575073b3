"""The four lists that say what is captured."""

from __future__ import annotations

import pytest

from incsnap.config.patterns import TableFilter, pattern_problem, split_list
from incsnap.tables import TableId


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


def test_a_pattern_that_python_cannot_read_as_java_does_is_a_problem() -> None:
    assert pattern_problem(r"a\.(?<n>b|c)\k<n>") is None
    assert pattern_problem(r"\p{Lu}+") is not None
    assert pattern_problem("[a-z&&[^b]]") is not None
    assert pattern_problem("a{99999999999999999999}") is not None


def test_patterns_without_a_table_are_found() -> None:
    chosen = TableFilter(table_include=("a.b", "a.typo"))
    assert chosen.without_match([TableId("a", "b")]) == ("a.typo",)


def test_a_database_may_be_included_when_any_of_its_tables_may() -> None:
    chosen = TableFilter(database_include=("a",), signal_table=TableId("s", "sig"))
    assert [chosen.may_include_database(name) for name in ("a", "b", "s", "mysql")] == [True, False, True, False]
