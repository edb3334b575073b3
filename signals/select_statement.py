"""The condition of a SELECT statement that narrows a table's rows: Debezium takes whole statements in two places.

Chunks are read by key, so of a statement nothing but its WHERE can be taken over.
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
#: What may come behind a WHERE: all of them are reserved words.
_CLAUSE = re.compile(
    r"(?<![.\w$@])(?:GROUP|HAVING|WINDOW|ORDER|LIMIT|UNION|EXCEPT|INTERSECT|FOR|LOCK|INTO|PROCEDURE)\b", re.I
)


def condition_of(statement: str, database: str, table: str) -> tuple[str, str]:
    """The statement's condition, "" for all rows of the table; and why it is none that a snapshot can have, or ""."""
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
