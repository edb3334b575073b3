"""Which tables a signal means: its patterns against the tables that are captured, all as ``db.table``."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from signals.records import AdditionalCondition
from signals.regex import exact_name, signal_matcher

#: Seconds for all patterns of one list: the stream waits for them. A thousand patterns on ten thousand tables take a
#: second, or ten where most begin with ``.*``.
SECONDS = 5.0

#: Of these patterns only the dot stands for something else, one character: what they match is as long as they are.
_PLAIN = re.compile(r"[0-9A-Za-z_.]+")


@dataclass(frozen=True, slots=True)
class Resolved:
    """``tables`` are captured; ``unknown`` are patterns no captured table matches, taken as literal names."""

    tables: tuple[str, ...]
    unknown: tuple[str, ...]


class _Names:
    """The tables that patterns are matched against, all within ``SECONDS`` from now."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._of_length: dict[int, list[str]] = {}
        for name in names:
            self._of_length.setdefault(len(name), []).append(name)
        self._known = frozenset(names)
        self._until = time.monotonic() + SECONDS

    def matched(self, pattern: str, *, ignore_case: bool = False) -> list[str]:
        """What all of ``pattern`` matches, in order; nothing where it is no expression. Raises ``TimeoutError``."""
        if not ignore_case and (name := exact_name(pattern)):
            return [name] if name in self._known else []
        try:
            matches = signal_matcher(pattern, ignore_case=ignore_case)
        except re.error:
            return []
        matching = []
        for name in self._of_length.get(len(pattern), ()) if _PLAIN.fullmatch(pattern) else self._names:
            if time.monotonic() > self._until:
                raise TimeoutError(f"matching {len(self._names)} tables took longer than {SECONDS:g} s")
            if matches(name):
                matching.append(name)
        return matching


def resolve(patterns: Iterable[str], captured: Sequence[str]) -> Resolved:
    """Full match, letter case counts; order by pattern, then as in ``captured``; each table once.

    As in Debezium. There ``.*`` means the signal table too; leave it out of ``captured`` when that is not wanted.
    Raises ``TimeoutError`` when it takes longer than ``SECONDS``.
    """
    names, known = _Names(captured), frozenset(captured)
    tables: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for pattern in patterns:
        matching = names.matched(pattern)
        literal = pattern.replace("`", "")
        if not matching and literal in known:
            matching = [literal]
        if matching:
            tables.update(dict.fromkeys(matching))
        else:
            unknown[literal] = None
    return Resolved(tuple(tables), tuple(unknown))


def conditions_of(conditions: Iterable[AdditionalCondition], tables: Sequence[str]) -> dict[str, str]:
    """The SQL of the first condition that matches, for each table that has one; here letter case does not count.

    Raises ``TimeoutError`` when it takes longer than ``SECONDS``.
    """
    names = _Names(tables)
    sql_of: dict[str, str] = {}
    for condition in conditions:
        for table in names.matched(condition.data_collection, ignore_case=True):
            sql_of.setdefault(table, condition.filter)
    return sql_of
