"""Tests that a condition which `condition_problem` accepts stays in its parentheses. The server judges."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from incsnap.mysql.session import QueryRefusedError, connect, query
from lab.addresses import MySqlAddress
from signals.condition import condition_problem
from tests.support.planned_job import settings_of
from tests.support.profile import seed

pytestmark = pytest.mark.servers

_TOKENS = [
    *("1", "a", "= 1", "OR", "OR 1 = 1", " ", "\n", "\x01", "\x1f", "\x7f", "\u00a0", "é"),
    *("(", ")", ") OR (", "'", '"', "`", "\\", "--", "-", "#", "/*", "*/", ";", "'x'", "@'", "x'4", "N'", "$$"),
]


@pytest.fixture
def connection(mysql_address: MySqlAddress) -> Iterator[Any]:
    with closing(connect(settings_of(mysql_address, "unused:1", "p", "shop").mysql)) as opened:
        yield opened


def _leaves(connection: Any, condition: str) -> bool | None:
    """Return True if the condition leaves its parentheses and so selects an excluded row; None if it is not SQL."""
    try:
        rows = query(connection, f"SELECT * FROM (SELECT 1 AS a) AS one WHERE 1 = 2 AND ({condition})")
    except QueryRefusedError:
        return None
    return bool(rows)


@pytest.mark.parametrize(
    "condition",
    ["a = 1) OR (1 = 1", "a = 1) OR 1 = 1 --\x01", "a = 1) OR 1 = 1 --\x7f", "a = 1) OR 1 = 1 #", "a) OR (a"],
)
def test_a_condition_that_leaves_its_parentheses_is_a_problem(connection: Any, condition: str) -> None:
    assert _leaves(connection, condition)
    assert condition_problem(condition)


def test_no_condition_that_is_let_through_leaves_its_parentheses(connection: Any) -> None:
    taken = seed(1)
    rng = random.Random(taken)
    judged = 0
    for _ in range(60_000):
        condition = "".join(rng.choice(_TOKENS) for _ in range(rng.randint(1, 9)))
        if condition_problem(condition) is None:
            left = _leaves(connection, condition)
            assert not left, f"{condition!r} (seed {taken})"
            judged += left is not None
            if judged > 300:
                return
    raise AssertionError(f"only {judged} conditions were understood by the server (seed {taken})")
