"""What signals ask of the snapshot, after the channels have parsed them and the planner has resolved the names."""

from __future__ import annotations

from dataclasses import dataclass

import regex

from incsnap.tables import TableId

#: Seconds for one name; an expression that takes longer stops nothing.
_MATCH_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class DataCollection:
    """A table that a signal asks for. ``condition``: its additional condition (SQL), "" for all rows.

    ``surrogate``: the ordering column to use in place of the key, "" for the key.
    """

    table: TableId
    condition: str = ""
    surrogate: str = ""


@dataclass(frozen=True, slots=True)
class Execute:
    """execute-snapshot. ``unresolved``: names and patterns that fit no captured table."""

    id: str
    collections: tuple[DataCollection, ...]
    unresolved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """stop-snapshot. ``patterns``: names or expressions (Java's, translated by the channel); () stops all."""

    id: str
    patterns: tuple[str, ...] = ()

    def stops(self, table: TableId) -> bool:
        """Full match and case-sensitive, as Debezium does; an expression that does not compile is a plain name."""
        return not self.patterns or any(_fits(pattern, str(table)) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Pause:
    id: str


@dataclass(frozen=True, slots=True)
class Resume:
    id: str


Command = Execute | Stop | Pause | Resume


def _fits(pattern: str, name: str) -> bool:
    if pattern == name:
        return True
    try:
        return regex.fullmatch(pattern, name, timeout=_MATCH_SECONDS) is not None
    except (regex.error, RecursionError, OverflowError, TimeoutError):
        return False
