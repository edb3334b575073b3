"""The WHERE condition of a SELECT statement that narrows a table's rows. Debezium takes whole statements in two places.

Chunks are read by key, so only the WHERE of a statement can be used.
"""

from __future__ import annotations

import re

from signals.condition import QUOTED, condition_problem

_NAME = r"`(?:[^`]|``)+`|[^\s`.,;()'\"]+"
_SELECT = re.compile(
    rf"SELECT\s+\*\s+FROM\s+(?:(?P<database>{_NAME})\s*\.\s*)?(?P<table>{_NAME})(?:\s+WHERE\s+(?P<condition>.+?))?\s*;?",
    re.I | re.S,
)
_QUOTED = re.compile(QUOTED, re.S)
_INNERMOST = re.compile(r"\([^()]*\)")
#: Reserved words of the clauses that may follow a WHERE.
_CLAUSE = re.compile(
    r"(?<![.\w$@])(?:GROUP|HAVING|WINDOW|ORDER|LIMIT|UNION|EXCEPT|INTERSECT|FOR|LOCK|INTO|PROCEDURE)\b", re.I
)


def condition_of(statement: str, database: str, table: str) -> tuple[str, str]:
    """Return the statement's condition, and why a snapshot cannot use the statement.

    An empty condition means all rows of the table. An empty reason means that the condition can be used.
    """
    match = _SELECT.fullmatch(statement.strip())
    if match is None:
        return "", "it is not a SELECT * of one table with a WHERE at most"
    of = (match["database"] or database, match["table"])
    if tuple(part.strip("`").replace("``", "`") for part in of) != (database, table):
        return "", f"it does not read {database}.{table}"
    condition = match["condition"] or ""
    if not condition:
        return "", ""
    if problem := condition_problem(condition):
        return "", f"its WHERE is not one condition: {problem}"
    outline, shorter = "", _QUOTED.sub("''", condition)
    while outline != shorter:
        outline, shorter = shorter, _INNERMOST.sub("", shorter)
    if clause := _CLAUSE.search(outline):
        return "", f"behind its WHERE stands {clause[0].upper()}"
    return condition, ""
