"""Which tables a signal means: its patterns against the tables that are captured, all as ``db.table``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from signals.records import AdditionalCondition
from signals.regex import full_match, java_pattern


@dataclass(frozen=True, slots=True)
class Resolved:
    """``tables`` are captured; ``unknown`` are patterns no captured table matches, taken as literal names."""

    tables: tuple[str, ...]
    unknown: tuple[str, ...]


def resolve(patterns: Iterable[str], captured: Sequence[str]) -> Resolved:
    """Full match, letter case counts; order by pattern, then as in ``captured``; each table once.

    As in Debezium. There ``.*`` means the signal table too; leave it out of ``captured`` when that is not wanted.
    Raises ``TimeoutError`` for a pattern that takes too long.
    """
    tables: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for pattern in patterns:
        found = [table for table in captured if _matches(pattern, table)]
        literal = pattern.replace("`", "")
        if not found and literal in captured:
            found = [literal]
        if found:
            tables.update(dict.fromkeys(found))
        else:
            unknown[literal] = None
    return Resolved(tuple(tables), tuple(unknown))


def matches_any(patterns: Iterable[str], table: str) -> bool:
    """For stop-snapshot: is ``table`` meant, by a pattern or by its literal name?"""
    return any(_matches(pattern, table) or pattern.replace("`", "") == table for pattern in patterns)


def condition_for(conditions: Iterable[AdditionalCondition], table: str) -> str | None:
    """The SQL of the first condition whose pattern matches ``table``; here letter case does not count."""
    for condition in conditions:
        if _matches(condition.data_collection, table, ignore_case=True):
            return condition.filter
    return None


def _matches(pattern: str, table: str, ignore_case: bool = False) -> bool:
    try:
        return full_match(java_pattern(pattern, ignore_case=ignore_case), table)
    except re.error:
        return False
