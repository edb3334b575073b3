"""How the buffer names places in it, where it can be cut, and what it tells of what lies between two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from incsnap.binlog.prepared import XaMark
from incsnap.binlog.slices import Slice
from incsnap.events import SchemaChange, StreamPosition
from incsnap.tables import TableId


class BufferPlace(NamedTuple):
    """A place in the buffer: a segment's fragments before ``fragment`` and kept events before ``event`` lie before it.

    Between transactions ``event`` is the fragment's first event; inside one it is behind a rows event of the fragment.
    The end of a segment that leaves nothing open is written as the beginning of the next.
    """

    segment: int
    fragment: int
    event: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a batch that begins at ``start`` can end. ``full``: what is buffered behind exceeds the limits."""

    start: BufferPlace
    end: BufferPlace
    full: bool


@dataclass(frozen=True, slots=True)
class UnnamedRows:
    """Rows of an included table whose maps tell no names (``binlog_row_metadata=MINIMAL``), among the statements that
    changed tables. ``first``, ``last``: how many of these come before the first and before the last of the rows.
    ``place``: file and position of the first, for messages."""

    table: TableId
    place: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What lies between two places: included tables with rows events, DDL, kept bytes, rows events, of XA transactions
    what was prepared and what ended, and tables with rows that do not name their columns."""

    tables: frozenset[TableId]
    changes: tuple[SchemaChange, ...]
    bytes: int
    events: int
    last_ts_us: int
    marks: tuple[XaMark, ...] = ()
    unnamed: tuple[UnnamedRows, ...] = ()


@dataclass(frozen=True, slots=True)
class Advance:
    """The next batch of the stream: everything between the position asked from and ``end``.

    ``tables``: included tables with rows events; ``changes``: DDL and TRUNCATE in order; ``signals``: the signal
    table's events, as no slice or one; ``bytes`` and ``events``: kept bytes and rows events; ``last_ts_us``: original
    commit time of the last transaction, 0 where there is none. ``full``: more is buffered behind than the limits let
    in. ``marks``: XA transactions prepared and ended, in order. ``unnamed``: tables with rows that do not name their
    columns; where there are any, or were, a batch ends behind each of ``changes`` that is no part of a transaction.
    """

    end: StreamPosition
    tables: frozenset[TableId]
    changes: tuple[SchemaChange, ...]
    signals: tuple[Slice, ...]
    bytes: int
    events: int
    last_ts_us: int
    full: bool = False
    marks: tuple[XaMark, ...] = ()
    unnamed: tuple[UnnamedRows, ...] = ()


@dataclass(frozen=True, slots=True)
class TailCondition:
    """``connected``: the server is sending; ``disconnects``: connections that were lost since the tail's beginning;
    ``buffered_bytes``: of binlog that is held. ``replaying``: what was delivered is read again, to the place where a
    batch is to be repeated from; it goes on as long as there is progress."""

    connected: bool
    disconnects: int
    buffered_bytes: int
    replaying: bool = False
