"""Conditions of Filter and of ContentBasedRouter: on the operation, and on columns."""

from __future__ import annotations

import pytest

from incsnap.transforms.condition_parser import GROOVY, JAVASCRIPT, choice_of, condition_of
from incsnap.transforms.conditions import (
    All,
    AnyOf,
    Choice,
    Condition,
    Not,
    NotUnderstoodError,
    OneOf,
    Ordered,
    Truth,
    of_operation,
)


def operations(condition: str, language: str) -> tuple[str, ...]:
    """The operations for which a condition on the operation alone holds."""
    parsed = condition_of(condition, language)
    truths = {op: of_operation(parsed, op, is_row=False) for op in "cdrtu"}
    assert all(isinstance(each, Truth) for each in truths.values())
    return tuple(op for op, truth in truths.items() if truth == Truth(True))


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
        ("!['c'].contains(value.op)", "drtu"),
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
        ("value.op > 'c'", GROOVY),
        ("value.after.id > null", GROOVY),
        ("value.source.table == 'x'", GROOVY),
        ("value.after.id + 1 == 2", GROOVY),
        ("value.op == 'c' 'd'", GROOVY),
        ("value.op == ", GROOVY),
        ('value.op == "$x"', GROOVY),
        ("value.op = 'c'", GROOVY),
        ("(value.op == 'c'", GROOVY),
        ("value.op == value.op", GROOVY),
        ("value.op in []", GROOVY),
        ("value.after.class == 'a'", GROOVY),
        ("value.after.get('id') == 1", JAVASCRIPT),
        ("value.after.id > 9007199254740992", JAVASCRIPT),
        ("topic == 'c'", GROOVY),
        ("", GROOVY),
    ],
)
def test_conditions_beyond_the_language_are_refused(condition: str, language: str) -> None:
    with pytest.raises(NotUnderstoodError):
        condition_of(condition, language)


_NEW = OneOf(("after", "status"), ("new",))


@pytest.mark.parametrize(
    ("condition", "op", "left"),
    [
        ("value.after.status == 'new'", "c", _NEW),
        ("value.after?.status == 'new'", "c", _NEW),
        ("value.after.get('status') == 'new'", "c", _NEW),
        ("value.after.status == 'new'", "d", Truth(False)),
        ("value.before.status == 'new'", "r", Truth(False)),
        ("value.after.status != 'new'", "d", Truth(True)),
        ("value.after.status == null", "d", Truth(True)),
        ("value.after == null", "d", Truth(True)),
        ("value.after == null", "c", Truth(False)),
        ("value.op == 'd' || value.after.status == 'new'", "d", Truth(True)),
        ("value.op == 'd' || value.after.status == 'new'", "u", _NEW),
        ("value.op == 'u' && value.after.status == 'new'", "c", Truth(False)),
        ("!(value.after.status == 'new')", "u", Not(_NEW)),
        ("value.after.id > 5 && 7 >= value.before.id", "u",
         All((Ordered(("after", "id"), ">", 5), Ordered(("before", "id"), "<=", 7, holds_for_null=True)))),
        ("value.after.status in ['new', 'old']", "u", OneOf(("after", "status"), ("new", "old"), in_groovys_list=True)),
        ("value.after.ok == true || value.after.id == 1.5", "u",
         AnyOf((OneOf(("after", "ok"), (True,)), OneOf(("after", "id"), (1.5,))))),
    ],
)  # fmt: skip
def test_a_condition_on_columns_is_left_for_the_rows(condition: str, op: str, left: Condition) -> None:
    assert of_operation(condition_of(condition, GROOVY), op, is_row=False) == left


@pytest.mark.parametrize(
    ("condition", "language", "holds"),
    [
        ("value.after.id < 5", GROOVY, True),
        ("value.after.id <= -5", GROOVY, True),
        ("value.after.id > -5", GROOVY, False),
        ("value.after.id >= 0", GROOVY, False),
        ("5 > value.after.id", GROOVY, True),
        ("5 < value.after.id", GROOVY, False),
        ("value.after.v < ''", GROOVY, True),
        ("value.after.id < 5", JAVASCRIPT, True),
        ("value.after.id < 0", JAVASCRIPT, False),
        ("value.after.id >= 0", JAVASCRIPT, True),
        ("value.after.id > -0.5", JAVASCRIPT, True),
        ("0 >= value.after.id", JAVASCRIPT, True),
        ("value.after.v < 'a'", JAVASCRIPT, False),
        ("value.after.v >= 'a'", JAVASCRIPT, False),
        ("value.after.v < '5'", JAVASCRIPT, True),
        ("value.after.v <= ''", JAVASCRIPT, True),
        ("value.after.v > ' 0x1 '", JAVASCRIPT, False),
        ("value.after.v > '0b2'", JAVASCRIPT, False),
        ("value.after.v > '-.5e1'", JAVASCRIPT, True),
    ],
)
def test_the_language_says_whether_null_is_less_or_greater(condition: str, language: str, holds: bool) -> None:
    parsed = condition_of(condition, language)
    assert isinstance(parsed, Ordered)
    assert parsed.holds_for_null == holds


def test_columns_of_a_row_are_those_that_the_value_shows() -> None:
    condition = condition_of("value.status == 'new'", GROOVY)
    assert of_operation(condition, "u", is_row=True) == _NEW
    assert of_operation(condition, "d", is_row=True) == OneOf(("before", "status"), ("new",))
    with pytest.raises(NotUnderstoodError, match=r"write value\.after\.status"):
        of_operation(condition, "u", is_row=False)


@pytest.mark.parametrize(
    ("expression", "choice"),
    [
        ("'all'", "all"),
        ("null", None),
        ("value.op in ['c'] ? 'new' : topic", Choice(OneOf(("op",), ("c",), in_groovys_list=True), "new", None)),
        ("(value.op == 'd' ? topic : null)", Choice(OneOf(("op",), ("d",)), None, None)),
        ("value.after.status == 'new' ? 'news' : null", Choice(OneOf(("after", "status"), ("new",)), "news", None)),
        ("(value.op == 'd') ? 'gone' : (value.op == 'c' ? 'new' : 'other')",
         Choice(OneOf(("op",), ("d",)), "gone", Choice(OneOf(("op",), ("c",)), "new", "other"))),
        ("value.op == 'd' ? 'gone' : value.op == 'c' ? 'new' : 'other';",
         Choice(OneOf(("op",), ("d",)), "gone", Choice(OneOf(("op",), ("c",)), "new", "other"))),
    ],
)  # fmt: skip
def test_an_expression_chooses_a_topic(expression: str, choice: Choice | str | None) -> None:
    assert choice_of(expression, GROOVY) == choice


def test_an_expression_cannot_choose_an_empty_topic() -> None:
    with pytest.raises(NotUnderstoodError, match="write null to leave the topic alone"):
        choice_of("value.op == 'd' ? '' : 'all'", GROOVY)
