"""The WHERE condition of a SELECT statement that narrows a table's rows. Debezium takes whole statements in two places.

Chunks are read by key, so only the WHERE of a statement can be used.
"""

from __future__ import annotations

import re

from signals.condition import QUOTED, condition_problem

_NAME = r"`(?:[^`]|``)+`|[^\s`.,;()'\"]+"
_SELECT = re.compile(
    rf"SELECT\s*\*\s*FROM\s+(?:(?P<database>{_NAME})\s*\.\s*)?(?P<table>{_NAME})(?:\s+WHERE\s+(?P<condition>.+?))?"
    r"\s*;?",
    re.I | re.S,
)
_QUOTED = re.compile(QUOTED, re.S)
_INNERMOST = re.compile(r"\([^()]*\)")
#: Reserved words of the clauses that may follow a WHERE.
_CLAUSE = re.compile(
    r"(?<![.\w$@])(?:GROUP|HAVING|WINDOW|ORDER|LIMIT|UNION|EXCEPT|INTERSECT|FOR|LOCK|INTO|PROCEDURE)\b", re.I
)
_ORDER = re.compile(r"(?<![.\w$@])ORDER\s+BY\b", re.I)


def condition_of(statement: str, database: str, table: str) -> tuple[str, str]:
    """Return the statement's condition, and why a snapshot cannot use the statement.

    An empty condition means all rows of the table. An empty reason means that the condition can be used. An ORDER BY at
    the end of the statement is left out: chunks are read in the order of the key.
    """
    match = _SELECT.fullmatch(_without_order(statement.strip()))
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
    if clause := _CLAUSE.search(_outline(condition)):
        return "", f"behind its WHERE stands {clause[0].upper()}"
    return condition, ""


def _without_order(statement: str) -> str:
    """Return the statement without an ORDER BY behind which no other clause stands."""
    outline = _outline(statement)
    order = _ORDER.search(outline)
    if order is None or _CLAUSE.search(outline, order.end()) or condition_problem(statement.rstrip("; \n")):
        return statement
    return statement[: order.start()].rstrip()


def _outline(sql: str) -> str:
    """Return `sql` with blanks in place of quoted texts and of all that stands in parentheses."""
    outline, shorter = "", _QUOTED.sub(_blanks, sql)
    while outline != shorter:
        outline, shorter = shorter, _INNERMOST.sub(_blanks, shorter)
    return outline


def _blanks(match: re.Match[str]) -> str:
    return " " * len(match[0])
