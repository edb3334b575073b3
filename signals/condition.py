"""Is a piece of SQL one closed condition?  It will stand between parentheses inside a query of ours.

It is the user's own SQL and runs with the connection's rights, as with Debezium; but one that closes a parenthesis it
did not open would leave its chunk's range and send rows twice. Only the outline is looked at: quotes closed,
parentheses balanced, no comment and no second statement. Whether it is good SQL is the server's to say.

Its parts are told as MySQL tells them in the empty SQL mode, which our sessions have: a backslash escapes inside of
single and double quotes, not of back-ticks, and ``--`` begins a comment before a blank, any control character, and at
the end. https://dev.mysql.com/doc/refman/en/comments.html
"""

from __future__ import annotations

import re

#: A quoted text or name of SQL.
QUOTED = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`"""
_TOKENS = re.compile(
    QUOTED + r"""|(?P<comment>--(?=[\x00-\x20\x7f]|\Z)|\#|/\*)|(?P<mark>['"`();\x00])""",
    re.S,
)


def condition_problem(sql: str) -> str | None:
    """What is wrong with the outline of ``sql``; ``None`` when it is closed in itself."""
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
