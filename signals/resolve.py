"""Which tables a signal means: its patterns against the tables that are captured, all as ``db.table``."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from signals.records import AdditionalCondition
from signals.regex import exact_name, signal_matcher

#: Seconds of the processor for all patterns of one list: the stream waits for them. One pattern on ten thousand tables
#: takes 20 ms.
SECONDS = 1.0

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
        self._alike: dict[str, list[str]] = {}
        for name in names:
            self._of_length.setdefault(len(name), []).append(name)
            self._alike.setdefault(name.lower(), []).append(name)
        self._until = time.thread_time() + SECONDS

    def called(self, name: str, *, ignore_case: bool) -> list[str]:
        alike = self._alike.get(name.lower(), [])
        return alike if ignore_case else [each for each in alike if each == name]

    def matched(self, pattern: str, *, ignore_case: bool) -> list[str]:
        """Return the tables that all of ``pattern`` matches, in order; none where it is no expression.

        Raise ``TimeoutError`` where all patterns of the list take too long.
        """
        if name := exact_name(pattern):
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
    """Full match; order by pattern, then as in ``captured``; each table once. ``ignore_case``: letter case does not
    count, as it does not in the names of the server's tables.

    As in Debezium. There ``.*`` means the signal table too; leave it out of ``captured`` when that is not wanted.
    Raises ``TimeoutError`` when it takes longer than ``SECONDS``.
    """
    names = _Names(captured)
    tables: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for pattern in patterns:
        literal = pattern.replace("`", "")
        if matching := names.matched(pattern, ignore_case=ignore_case) or names.called(
            literal, ignore_case=ignore_case
        ):
            tables.update(dict.fromkeys(matching))
        else:
            unknown[literal] = None
    return Resolved(tuple(tables), tuple(unknown))


def conditions_of(conditions: Iterable[AdditionalCondition], tables: Sequence[str]) -> dict[str, str]:
    """The SQL of the first condition that matches, for each table that has one; here letter case never counts.

    Raises ``TimeoutError`` when it takes longer than ``SECONDS``.
    """
    names = _Names(tables)
    sql_of: dict[str, str] = {}
    for condition in conditions:
        for table in names.matched(condition.data_collection, ignore_case=True):
            sql_of.setdefault(table, condition.filter)
    return sql_of
