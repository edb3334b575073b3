"""What signals ask of the snapshot, after the channels have parsed them and the planner has resolved the names."""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.tables import TableId


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
    """Asks for what execute-snapshot does. ``unresolved``: names and patterns that fit no captured table."""

    id: str
    collections: tuple[DataCollection, ...]
    unresolved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Asks for what stop-snapshot does. ``tables``: those it names; None stops all. ``asked_by``: only what a signal
    asked for whose id begins so."""

    id: str
    tables: frozenset[TableId] | None = None
    asked_by: str = ""

    def stops(self, signal: str, table: TableId) -> bool:
        return (self.tables is None or table in self.tables) and signal.startswith(self.asked_by)


@dataclass(frozen=True, slots=True)
class Pause:
    id: str


@dataclass(frozen=True, slots=True)
class Resume:
    id: str


@dataclass(frozen=True, slots=True)
class SetThrottle:
    """Asks for what incsnap-throttle does. ``limits``: (name, the most that it may be) pairs, which hold from now on; 0
    for no limit, None for that of the settings. Those that it does not name stay."""

    id: str
    limits: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """Says that changes of a table are left out of the stream from here on: its windows must be read again."""

    id: str  #: of the notification
    table: TableId
    place: str  #: file and position of the first row that is left out
    reason: str
    is_repeated: bool = False  #: whether an earlier notification has told it


Command = Execute | Stop | Pause | Resume | SetThrottle | LeaveOut
