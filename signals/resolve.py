"""Finding the tables that a signal means: its patterns are matched against the captured tables, all as `db.table`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from signals.records import AdditionalCondition
from signals.regex import named, signal_matcher

#: Most processor seconds for all patterns of one list, because the stream waits. One pattern takes 20 ms for 10,000
#: tables.
SECONDS = 1.0

#: Patterns in which only the dot is special. A dot matches one character, so a match is as long as the pattern.
_PLAIN = re.compile(r"[0-9A-Za-z_.]+")


@dataclass(frozen=True, slots=True)
class Resolved:
    """The tables that a signal means."""

    tables: tuple[str, ...]  #: captured tables that a pattern matches
    unknown: tuple[str, ...]  #: patterns that match no captured table, a quoted name without its quotes
    names: tuple[str, ...] = field(default=(), compare=False)  #: both, in the order of the patterns


class _Names:
    """The tables that patterns are matched against. All matching must end within `SECONDS` of the creation."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._of_length: dict[int, list[str]] = {}
        self._alike: dict[str, list[str]] = {}
        for name in names:
            self._of_length.setdefault(len(name), []).append(name)
            self._alike.setdefault(name.lower(), []).append(name)
        self._until = time.thread_time() + SECONDS

    def called(self, name: str, *, ignore_case: bool) -> list[str]:
        """Return the tables with exactly this name."""
        alike = self._alike.get(name.lower(), [])
        return alike if ignore_case else [each for each in alike if each == name]

    def matched(self, pattern: str, *, ignore_case: bool) -> list[str]:
        """Return the tables whose whole name matches `pattern`, in order. Return [] if it is not a valid expression.

        Raise TimeoutError if all patterns of the list together take too long.
        """
        if name := named(pattern):
            return self.called(name, ignore_case=ignore_case)
        try:
            matches = signal_matcher(pattern, ignore_case=ignore_case)
        except re.error:
            return []
        matching = []
        for name in self._of_length.get(len(pattern), ()) if _PLAIN.fullmatch(pattern) else self._names:
            if time.thread_time() > self._until:
                raise TimeoutError(
                    f"matching {len(self._names)} tables took longer than {SECONDS:g} s; name fewer expressions"
                )
            if matches(name):
                matching.append(name)
        return matching


def resolve(patterns: Iterable[str], captured: Sequence[str], *, ignore_case: bool = False) -> Resolved:
    """Return the captured tables that the patterns match, and the patterns that match none.

    A pattern must match the whole name. Tables are ordered by pattern, then as in `captured`, and each comes once. As
    in Debezium `.*` also means the signal table; leave it out of `captured` to exclude it. Raise TimeoutError if
    matching takes longer than `SECONDS`.
    """
    names = _Names(captured)
    is_known: dict[str, bool] = {}
    for pattern in patterns:
        if matching := names.matched(pattern, ignore_case=ignore_case):
            is_known.update(dict.fromkeys(matching, True))
        else:
            is_known.setdefault(named(pattern) or pattern, False)
    known, unknown = (tuple(name for name, is_one in is_known.items() if is_one is one) for one in (True, False))
    return Resolved(known, unknown, tuple(is_known))


def conditions_of(conditions: Iterable[AdditionalCondition], tables: Sequence[str]) -> dict[str, str]:
    """Return the SQL of the first condition that matches each table, by table. Letter case does not matter.

    Tables without a condition are left out. Raise TimeoutError if matching takes longer than `SECONDS`.
    """
    names = _Names(tables)
    sql_of: dict[str, str] = {}
    for condition in conditions:
        for table in names.matched(condition.data_collection, ignore_case=True):
            sql_of.setdefault(table, condition.filter)
    return sql_of
