"""Conditions of Filter that ask for the operation alone."""

from __future__ import annotations

import pytest

from incsnap.transforms.conditions import GROOVY, JAVASCRIPT, NotUnderstoodError, operations


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("value.op == 'c'", "c"),
        ("'c' == value.op", "c"),
        ('value.op != "d"', "crtu"),
        ("value.op == 'u' || value.op == 'c'", "cu"),
        ("value.op != 'u' && value.op != 'c';", "drt"),
        ("!(value.op == 'u') && !(value.op == 'c')", "drt"),
        ("value.op == 'u' || value.op == 'c' && value.op == 'd'", "u"),
        ("(value.op == 'u' || value.op == 'c') && value.op == 'c'", "c"),
        ("value.op in ['c', 'u', 'r']", "cru"),
        ("['c','u'].contains(value.op)", "cu"),
        ("!(value.op in ['c'])", "drtu"),
        ("value.op == 'x'", ""),
        ("true", "cdrtu"),
        ("false || value.op=='d'", "d"),
        ("!!(value.op == 'd') && !false", "d"),
    ],
)
def test_a_condition_of_groovy_is_true_of_some_operations(condition: str, kept: str) -> None:
    assert operations(condition, GROOVY) == tuple(kept)


def test_javascript_has_its_own_words() -> None:
    assert operations("value.op === 'c' || value.op == 'r'", JAVASCRIPT) == ("c", "r")
    assert operations("value.op !== 'd' && ['d', 'u'].includes(value.op)", JAVASCRIPT) == ("u",)


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        ("!value.op == 'c'", "!(value.op == 'c')"),
        ("!value.op != 'c'", "!(value.op != 'c')"),
        ("value.op == 'u' || !value.op in ['d','c']", "!(value.op in ['d','c'])"),
        ("!'c' == value.op", "!('c' == value.op)"),
        ("!!value.op == 'c'", "!(value.op == 'c')"),
        ("!['c'].contains(value.op)", "!(['c'].contains(value.op))"),
    ],
)
def test_a_negation_needs_brackets_or_a_truth_value(condition: str, meant: str) -> None:
    with pytest.raises(NotUnderstoodError, match="! stands before") as caught:
        operations(condition, GROOVY)
    assert f"write {meant}" in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "language"),
    [
        ("value.op === 'c'", GROOVY),
        ("value.op in ['c']", JAVASCRIPT),
        ("['c'].contains(value.op)", JAVASCRIPT),
        ("value.after.id > 5", GROOVY),
        ("value.op == 'c' && value.after.name == 'x'", GROOVY),
        ("value.op == 'c' 'd'", GROOVY),
        ("value.op == ", GROOVY),
        ('value.op == "$x"', GROOVY),
        ("value.op = 'c'", GROOVY),
        ("(value.op == 'c'", GROOVY),
        ("value.op == value.op", GROOVY),
        ("value.op in []", GROOVY),
        ("topic == 'c'", GROOVY),
        ("value.ops == 'c'", GROOVY),
        ("", GROOVY),
    ],
)
def test_conditions_beyond_the_language_are_refused(condition: str, language: str) -> None:
    with pytest.raises(NotUnderstoodError):
        operations(condition, language)
