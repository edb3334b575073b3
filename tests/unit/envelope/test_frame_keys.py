"""Tests of the columns of a DataFrame that tell rows apart."""

from __future__ import annotations

import pytest

from incsnap.envelope.column_rules import ColumnRules, TransformRule
from incsnap.envelope.frame_format import hidden_keys, key_names
from incsnap.envelope.masks import Transform
from incsnap.envelope.table_view import view_of
from incsnap.tables import Column, TableId, TableShape

SHAPE = TableShape(
    TableId("shop", "orders"),
    (Column("id", "int"), Column("part", "varchar", charset="utf8mb4"), Column("n", "int")),
    key=(0, 1),
)


def test_the_columns_of_the_primary_key_tell_rows_apart() -> None:
    view = view_of(SHAPE, ColumnRules(exclude=(r"shop\.orders\.n",)))

    assert (key_names(view), hidden_keys(view)) == (("id", "part"), ())


@pytest.mark.parametrize(
    ("rules", "hidden"),
    [
        (ColumnRules(exclude=(r"shop\.orders\.id",)), "id is left out"),
        (
            ColumnRules(transforms=(TransformRule("cut", (r".*\.part",), Transform("truncate", 2)),)),
            "part is masked or truncated",
        ),
        (ColumnRules(booleans=(r"shop\.orders\.flag",)), "flag is written as a boolean"),
    ],
)
def test_no_column_is_a_key_where_one_of_it_is_not_told_as_it_is(rules: ColumnRules, hidden: str) -> None:
    """The others may be those of several rows, of which a MERGE would keep one."""
    flagged = TableShape(SHAPE.id, (*SHAPE.columns, Column("flag", "tinyint")), key=(0, 1, 3))
    view = view_of(flagged, rules)

    assert (key_names(view), hidden_keys(view)) == ((), (hidden,))


def test_a_mask_that_leaves_numbers_as_they_are_hides_no_key() -> None:
    rules = ColumnRules(transforms=(TransformRule("cut", (r".*\.id",), Transform("truncate", 2)),))

    assert key_names(view_of(SHAPE, rules)) == ("id", "part")
