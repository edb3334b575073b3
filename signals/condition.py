"""Is a piece of SQL one closed condition?  It will stand between parentheses inside a query of ours.

Only its outline is looked at: quotes closed, parentheses balanced, no comment and no second statement. So it cannot
reach out of its parentheses; whether it is good SQL is the server's to say.
"""

from __future__ import annotations

import re

_TOKENS = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|(?P<comment>--(?=\s|\Z)|\#|/\*)|(?P<mark>['"`();\x00])""",
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
