"""The values that the buffer and the tail return: places, cuts, contents of a stretch, the next batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from incsnap.binlog.slices import Slice
from incsnap.binlog.xa_parts import XaMark
from incsnap.events import SchemaChange, StreamPosition
from incsnap.tables import TableId


class BufferPlace(NamedTuple):
    """A place in the buffer, between two kept events.

    Everything before `event` of `segment` lies before the place. A place between two transactions names the first event
    of the later fragment. A place inside a transaction names the event behind a rows event. If a segment leaves no
    transaction open, the place at its end is written as the beginning of the next segment.
    """

    segment: int  #: number of the segment in the stream, from 0
    fragment: int  #: index of the fragment in the segment
    event: int  #: index of the kept event in the segment


@dataclass(frozen=True, slots=True)
class Cut:
    """A possible batch: the beginning and the end."""

    start: BufferPlace  #: beginning of the batch
    end: BufferPlace  #: end of the batch; equal to `start` if no end is possible yet
    full: bool  #: the buffer holds more after `end` than the limits allow


@dataclass(frozen=True, slots=True)
class UnnamedRows:
    """Rows of one included table whose table maps have no column names (`binlog_row_metadata=MINIMAL`)."""

    table: TableId  #: table of the rows
    place: str  #: file and position of the first of the rows, for messages
    first: int  #: how many of the batch's statements (`changes`) come before the first of the rows
    last: int  #: how many of the batch's statements come before the last of the rows


@dataclass(frozen=True)
class Contents:
    """A summary of the events between two places."""

    tables: frozenset[TableId]  #: included tables with rows events
    changes: tuple[SchemaChange, ...]  #: statements that changed tables (DDL and TRUNCATE), in order
    bytes: int  #: bytes of kept events
    events: int  #: number of rows events of included tables
    last_ts_us: int  #: original commit time of the last transaction, in µs since 1970; 0 if there is no transaction
    marks: tuple[XaMark, ...] = ()  #: XA transactions that were prepared or ended, in order
    unnamed: tuple[UnnamedRows, ...] = ()  #: tables with rows without column names


@dataclass(frozen=True, kw_only=True)
class Advance(Contents):
    """The next batch of the stream: everything between the given position and `end`.

    Once the tail has read rows without column names, each statement that may change a captured table ends the batch. So
    one batch decodes all rows of such a table by one definition. The statement must be a transaction of its own, which
    CREATE TABLE ... SELECT is not.
    """

    end: StreamPosition  #: position of the batch's end
    signals: tuple[Slice, ...]  #: events of the signal table: one slice, or none
    full: bool = False  #: the buffer holds more after `end` than the limits allow


@dataclass(frozen=True, slots=True)
class TailCondition:
    """The state of the tail's connection and buffer."""

    connected: bool  #: the server is sending
    disconnects: int  #: connections lost since the tail began
    buffered_bytes: int  #: bytes of memory of the buffer
    replaying: bool = False  #: the tail reads delivered events again, up to the end of a batch that is to be repeated
