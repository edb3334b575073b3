"""A check that a piece of SQL is one closed condition, because it is put between parentheses inside our queries.

The SQL is the user's own and runs with the connection's privileges, as in Debezium. But a condition that closes a
parenthesis which it did not open would leave its chunk's range and send rows twice. Only the outline is checked: closed
quotes, balanced parentheses, no comment and no second statement. The server judges the rest.

The tokens are those of MySQL in the empty SQL mode, which our sessions have. A backslash escapes inside single and
double quotes, but not inside backticks. `--` begins a comment before a blank, before a control character, and at the
end. https://dev.mysql.com/doc/refman/en/comments.html
"""

from __future__ import annotations

import re

#: A quoted text or name in SQL.
QUOTED = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`"""
_TOKENS = re.compile(
    QUOTED + r"""|(?P<comment>--(?=[\x00-\x20\x7f]|\Z)|\#|/\*)|(?P<mark>['"`();\x00])""",
    re.S,
)


def condition_problem(sql: str) -> str | None:
    """Return what is wrong with the outline of `sql`, or None if it is one closed condition."""
    if not sql.strip():
        return "it is empty"
    depth = 0
    for token in _TOKENS.finditer(sql):
        if token["comment"]:
            return "it holds a comment"
        mark = token["mark"]
        if mark is None:
            continue
        if mark in "'\"`":
            return f"a {mark} is not closed"
        if mark in ";\0":
            return "it holds more than one condition"
        depth += 1 if mark == "(" else -1
        if depth < 0:
            return "a parenthesis is closed that was not opened"
    return "a parenthesis is not closed" if depth else None
