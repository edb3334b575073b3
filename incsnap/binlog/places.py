"""How the buffer names cuts through what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from incsnap.events import SchemaChange
from incsnap.tables import TableId


class Place(NamedTuple):
    """Pieces before ``piece`` and kept events before ``event`` of a segment are behind the cut.

    Between transactions ``event`` is the piece's first event; inside one it is behind a rows event of the piece.
    The end of a segment that leaves nothing open is written as the beginning of the next.
    """

    segment: int
    piece: int
    event: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a batch that begins at ``start`` can end. ``full``: what is buffered behind exceeds the limits."""

    start: Place
    end: Place
    full: bool


@dataclass(frozen=True, slots=True)
class Contents:
    """What lies between two places: included tables with rows events, DDL, kept bytes, rows events."""

    tables: frozenset[TableId]
    changes: tuple[SchemaChange, ...]
    bytes: int
    events: int
    last_ts_us: int
