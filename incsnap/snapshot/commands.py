"""What signals ask of the snapshot, after the channels have parsed them and the planner has resolved the names."""

from __future__ import annotations

from collections.abc import Iterable
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
    """execute-snapshot. ``unresolved``: names and patterns that fit no captured table."""

    id: str
    collections: tuple[DataCollection, ...]
    unresolved: tuple[str, ...] = ()


def initial_snapshot(job_id: str, tables: Iterable[TableId]) -> tuple[Execute, ...]:
    """The command that ``snapshot.mode=initial`` stands for: all captured tables, by the way of a signal, so beside the
    stream. There is none where there are no tables.

    Debezium's withholds the stream until it is done. What is committed before the first batch is in the SELECTs,
    what comes later is in the stream too.
    """
    collections = tuple(DataCollection(table) for table in tables)
    return (Execute(f"initial-{job_id}", collections),) if collections else ()


@dataclass(frozen=True, slots=True)
class Stop:
    """stop-snapshot. ``tables``: those it names; None stops all."""

    id: str
    tables: frozenset[TableId] | None = None

    def stops(self, table: TableId) -> bool:
        return self.tables is None or table in self.tables


@dataclass(frozen=True, slots=True)
class Pause:
    id: str


@dataclass(frozen=True, slots=True)
class Resume:
    id: str


@dataclass(frozen=True, slots=True)
class SetThrottle:
    """incsnap-throttle. ``rows_per_second``: that chunks may read from now on, all tables together; 0 for no limit."""

    id: str
    rows_per_second: int


Command = Execute | Stop | Pause | Resume | SetThrottle
