"""Tests of SQL and plans for rows that a signal chooses."""

from __future__ import annotations

import pytest

from incsnap.snapshot.chunk_query import any_of, chunk_tail, listed_tail, maximum_key, within
from incsnap.snapshot.keys import Key
from incsnap.snapshot.window import Chunk
from incsnap.tables import Column, TableId

_A, _B = Column("a", "int", nullable=False), Column("b", "varchar", charset="utf8mb4", nullable=True)
_E, _S = Column("e", "enum", values=("x", "y")), Column("s", "set", values=("x", "y"))
_TABLE = TableId("shop", "orders")


@pytest.mark.parametrize(
    ("columns", "keys", "sql"),
    [
        ([_A], [("1",)], "((`a` = 1))"),
        ([_A], [("1",), ("2",)], "(`a` IN (1, 2))"),
        ([_A, _B], [("1", "x"), ("2", "y")], "((`a`, `b`) IN ((1, _utf8mb4 x'78'), (2, _utf8mb4 x'79')))"),
        ([_A, _E], [("1", "2"), ("3", "2")], "((`e` = 2 AND (`a` IN (1, 3))))"),
        ([_E, _A], [("1", "2"), ("2", "3")], "((`e` = 1 AND ((`a` = 2))) OR (`e` = 2 AND ((`a` = 3))))"),
        ([_E, _S], [("1", "2"), ("2", "3")], "((`e` = 1 AND `s` = 2) OR (`e` = 2 AND `s` = 3))"),
        ([_E], [("1",), ("2",)], "(`e` IN (1, 2))"),
        ([_A, _B], [("1", None)], "((`a` = 1 AND `b` IS NULL))"),
        ([_A, _B], [("1", None), ("1", "x")], "((`a` = 1 AND `b` = _utf8mb4 x'78') OR (`a` = 1 AND `b` IS NULL))"),
    ],
)
def test_listed_keys_are_found_by_the_index(columns: list[Column], keys: list[Key], sql: str) -> None:
    if len(keys) == 2 and None in keys[0]:
        assert sorted(any_of(columns, keys)) == sorted(sql)
        return
    assert any_of(columns, keys) == sql


@pytest.mark.parametrize(
    ("column", "value", "sql"),
    [
        (
            Column("d", "datetime", nullable=False, fraction=3),
            "1970-01-01 00:00:00.000",
            "(((`d` = '1970-01-01 00:00:00.000' OR YEAR(`d`) = 0"
            " OR COALESCE(DAY(`d`) NOT BETWEEN 1 AND DAY(LAST_DAY(`d`)), TRUE))))",
        ),
        (Column("d", "datetime", nullable=False), "1970-01-01 00:00:01", "((`d` = '1970-01-01 00:00:01'))"),
        (Column("d", "date", nullable=True), "1970-01-01", "((`d` = '1970-01-01'))"),
        (Column("d", "timestamp", nullable=True), None, "(((`d` IS NULL OR `d` = '0000-00-00 00:00:00')))"),
        (Column("e", "enum", values=("a", "")), "2", "(((`e` = 2 OR `e` = 0)))"),
        (Column("e", "enum", values=("a", "")), "1", "((`e` = 1))"),
    ],
)
def test_values_that_records_show_alike_are_found_together(column: Column, value: str | None, sql: str) -> None:
    assert any_of([column], [(value,)]) == sql


def test_a_text_in_another_character_set_is_converted() -> None:
    assert any_of([Column("g", "char", charset="gbk")], [("a",)]) == "((`g` = CONVERT(_utf8mb4 x'61' USING gbk)))"


def test_limits_may_have_leading_columns_only() -> None:
    assert within([_A, _B], ("1",), ("9",)) == "(`a` >= 1) AND (`a` <= 9)"
    assert within([_A, _B], None, None) == ""


def test_a_sample_is_a_hash_of_the_key_with_the_seed() -> None:
    chunk = Chunk(_TABLE, ("a",), None, ("9",), every=10, seed=3, first=("1",))
    assert chunk_tail(chunk, [_A]) == (
        "FROM `shop`.`orders` FORCE INDEX (`PRIMARY`) WHERE (`a` <= 9) AND ((`a` >= 1))"
        " AND (CRC32(CONCAT_WS('#', 3, CAST(`a` AS CHAR))) % 10 = 0) ORDER BY `a`"
    )
    assert "WHERE (`a` >= 1) ORDER BY" in maximum_key(_TABLE, [_A], first=("1",))


def test_a_list_without_possible_keys_selects_nothing() -> None:
    chunk = Chunk(_TABLE, ("a",), None, ("9",), condition="b = 1", keys="list")
    assert listed_tail(chunk, [_A], []) == "FROM `shop`.`orders` FORCE INDEX (`PRIMARY`) WHERE FALSE AND (b = 1)"
