"""Rows that carry their own columns, and statements among them."""

from __future__ import annotations

from incsnap.tasks.described_rows import Alteration


def test_two_statements_are_one_with_the_names_behind_both() -> None:
    first = Alteration("a", "first", {"x": None, "cost": "price"}, {"x": "1"})
    second = Alteration("b", "second", {"y": "x", "z": None, "fee": "cost"}, {"z": "2"})

    both = second.behind(first)

    assert (both.id, both.sql) == ("b", "second")
    assert (first.is_one, second.is_one, both.is_one) == (True, True, False)
    assert both.origins is not None
    assert {name: both.origins[name] for name in ("y", "z", "fee")} == {"y": None, "z": None, "fee": "price"}
    assert both.defaults == {"y": "1", "z": "2"}


def test_a_column_that_has_the_name_of_an_earlier_one_does_not_have_its_default() -> None:
    added, dropped = Alteration("a", "", {"n": None}, {"n": "5"}), Alteration("b", "", {})

    gone = dropped.behind(added)

    assert Alteration("c", "", {"n": None}).behind(gone).defaults == {}
    assert Alteration("c", "", {"n": None}, {"n": "6"}).behind(gone).defaults == {"n": "6"}
    assert Alteration("c", "", {"n": "m"}).behind(gone).defaults == {}
    assert Alteration("c", "", {"m": "n", "n": None}).behind(added).defaults == {"m": "5"}


def test_a_statement_that_is_not_understood_makes_both_unknown() -> None:
    known, unknown = Alteration("a", "", {"x": None}), Alteration("b", "", None)

    assert known.behind(unknown).origins is None
    assert unknown.behind(known).origins is None


def test_a_statement_that_is_not_understood_hides_the_defaults_before_it() -> None:
    known, unknown = Alteration("a", "", {"x": None}, {"x": "1"}), Alteration("b", "", None, {"y": "2"})

    assert unknown.behind(known).defaults == {"y": "2"}
    assert known.behind(unknown).defaults == {"x": "1", "y": "2"}


def test_an_alteration_survives_json() -> None:
    altered = Alteration("a:binlog.000001:4", "ALTER TABLE `ü` ADD x INT", {"x": None}, {"x": "it's"})

    assert Alteration.from_json(altered.to_json()) == altered
