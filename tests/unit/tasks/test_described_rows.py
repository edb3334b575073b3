"""Rows that carry their own columns, and statements among them."""

from __future__ import annotations

from incsnap.tasks.described_rows import Alteration


def test_two_statements_are_one_with_the_names_behind_both() -> None:
    first = Alteration("a", "first", {"x": None, "cost": "price"}, {"x": "1"})
    second = Alteration("b", "second", {"y": "x", "z": None, "fee": "cost"}, {"z": "2"})

    both = second.behind(first)

    assert (both.id, both.sql) == ("b", "second")
    assert both.origins is not None
    assert {name: both.origins[name] for name in ("y", "z", "fee")} == {"y": None, "z": None, "fee": "price"}
    assert both.defaults == {"y": "1", "z": "2"}


def test_a_statement_that_is_not_understood_makes_both_unknown() -> None:
    known, unknown = Alteration("a", "", {"x": None}), Alteration("b", "", None)

    assert known.behind(unknown).origins is None
    assert unknown.behind(known).origins is None


def test_an_alteration_survives_json() -> None:
    altered = Alteration("a:binlog.000001:4", "ALTER TABLE `ü` ADD x INT", {"x": None}, {"x": "it's"})

    assert Alteration.from_json(altered.to_json()) == altered
