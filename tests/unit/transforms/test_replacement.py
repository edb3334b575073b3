"""Replacements of routers, in Java's words."""

from __future__ import annotations

import pytest

from incsnap.transforms.replacement import parsed, replaced


@pytest.mark.parametrize(
    ("regex", "replacement", "text", "expected"),
    [
        ("(.*)-(.*)", "$2.$1", "a-b", "b.a"),
        ("(?<first>.)(?<rest>.*)", "${rest}${first}", "abc", "bca"),
        ("(a)(b)?", "$1$2.", "a", "a."),
        ("(.*)", "$12", "a", "a2"),
        ("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)", "$11$2", "abcdefghijk", "kb"),
        ("(.*)", "$0!", "a", "a!"),
        ("(.*)", r"\$1\\$1", "a", r"$1\a"),
        ("", "x", "", "x"),
        # All of it matches, but the first match is the shorter one.
        ("a|ab", "x", "ab", "xb"),
        ("a*?", "x", "aa", "xaa"),
    ],
)
def test_the_first_match_is_replaced(regex: str, replacement: str, text: str, expected: str) -> None:
    assert replaced(regex, replacement, text) == expected


def test_nothing_is_replaced_where_not_all_matches() -> None:
    assert replaced("b", "x", "abc") is None


@pytest.mark.parametrize(
    ("replacement", "problem"),
    [
        ("$2", "no group 2"),
        ("${nobody}", "no group 'nobody'"),
        ("a$", r"write \$"),
        ("$a", r"write \$"),
        ("${1}", r"write \$"),
        ("a\\", "ends with a backslash"),
    ],
)
def test_patterns_that_java_refuses_are_refused(replacement: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("\\", "\\\\").replace("$", r"\$")):
        parsed("(.)", replacement)
