"""The window of a chunk: the rules that decide whether a row from a SELECT may be sent.

All these rules are in this file, as small functions. They know GTIDs, positions and tables. They know no SQL, no rows,
no Kafka and no clock.

**Why two watermarks.** MySQL commits a transaction in four stages: *written* to the binlog, *sent* to replicas (and to
incsnap), *visible* to SELECT, and listed in *gtid_executed*. So an event may arrive before a SELECT can see its row,
and a SELECT may see a row before the row's GTID is in `gtid_executed`. No single watermark is right in both cases.

**Rules** for a chunk that batch *n* plans. One batch or several send its rows; *r* is the batch that sends a given row.
Batch 0 stands for everything that lies before the job's first place in the binlog.

* **Low watermark.** Before the SELECT, the reader waits until the server has executed everything that batch *n* and
  earlier batches send (`low_watermark_of`). Executed changes are visible. So no row of the SELECT is older than an
  event of these batches. The SELECT may run at any time after batch *n* was planned. The low watermark of a later batch
  is good as well.
* **High watermark.** After the SELECT, the reader notes the end of the *binlog*. A change is written to the binlog
  before it is visible, so everything that the SELECT saw lies before this position. `gtid_executed` would be wrong: it
  may lack a transaction that the SELECT saw.
* **Release.** The window may be sent from the first batch on whose end has reached the high watermark (`released_by`).
  It is sent in **parts**: each batch sends as many parts as its budget allows.
* **Discard.** Batch *r* drops a row if the row's key has an event in batches *n+1* to *r*: the event wins over the row.
  The sink has the keys of batch *r* itself. It has written down those of batches *n+1* to *r-1* (`discard_batches`),
  also while the chunk was still being read.
* **Rows that nothing tells apart.** A table without a key can be read in the order of a surrogate key, but no event can
  discard a row of it. So its events do to its windows what a TRUNCATE does (`disturbed_by`, `finished_by_events`).
* **Listed keys.** A chunk may be a list of keys in place of a range. If the SELECT finds no row for a key of the list,
  the window may hold a deletion of the key. All rules hold for this deletion as for a row of the key.
* **DDL and TRUNCATE.** Such a statement in batches *n+1* to *r* drops a window of which no part was sent. The chunk is
  read again (`spoiled_by`). If a part was sent before, the end of an earlier batch has reached the high watermark, so
  the statement is later than the SELECT. The rest of the window is then sent at once, in front of the batch's events
  (`finished_by`). A statement that moves rows into the table without events drops every window of the table
  (`NextContext.begin_again`).

**Proof that no key goes back in time and no row is lost.** Let the SELECT read the row of key *k* in version *v*. Let
batch *r* send this row.

    1. The events of batches up to *n* are executed before the SELECT. So *v* is the version that the last of these
       events of *k* brings, or a newer version.
    2. No event of *k* is in batches *n+1* to *r*. Otherwise the row would have been discarded.
    3. Version *v* was visible to the SELECT, so its event lies before the high watermark. The end of batch *r* has
       reached the high watermark. So the event is in a batch up to *r*, and by 2 in a batch up to *n*.
    4. By 1 and 3, *v* is exactly the newest version of *k* that was sent. Every later event of *k* is newer than *v*.

A discarded row is not lost: the last event of *k* in batches *n+1* to *r* is sent, and it brings version *v* or a newer
one. A row that was deleted before the SELECT is not read, and its delete is sent as an event like any other.

**Proof for listed keys.** Let the SELECT find no row of key *k*, and let batch *r* send the deletion of *k*. The proof
above holds with "there is no row" as the version *v* of *k*. So the last event of *k* in batches up to *n* is a
deletion, or there is no event. At the place where the deletion is sent, the table has no row of *k*.

**Proof for rows that nothing tells apart.** The SELECT saw the table as it was at a place in the log. That place lies
between the end of batch *n* and the high watermark, and so before the end of the batch that sends the first part. An
event of the table in batch *n+1* or later, up to the batch of the first part, drops the window. In a later batch the
rest of the window goes in front of the events. So no event of the table lies between the end of batch *n* and the rows.
The rows are therefore exactly those that the stream has brought at the place where they are sent.

**Proof for a window that is dropped.** Parts of the window may have been sent before; for example, records have another
form or other partitions now. A new window reads the chunk again. It is planned in the batch that drops the old window,
or later. Let the old window have sent a row in version *v*. The event of version *v* lies before the end of the batch
that sent the row, and so before the low watermark of the new window. So the new SELECT reads version *v* or a newer
one, and the proof above applies to the new window. A row may thus come twice for one request, but never in an older
version.

`docs/adr/0001-two-watermarks.md` has the counter-examples. The mutants in `tests/property` show that each rule is
needed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.keys import Key
from incsnap.tables import Column, TableId, TableShape


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk: the rows of a table with `lower < key <= upper` that also fulfil a condition.

    Neighbouring chunks share a boundary, so together they cover every row once. `chunk_query` writes the SQL.
    """

    table: TableId  #: table to read
    #: Ordering columns: the primary key, or the signal's surrogate key followed by the columns that tell rows apart.
    columns: tuple[str, ...]
    lower: Key | None  #: key before the first row, not in the chunk; None: the chunk begins at the first row
    upper: Key  #: last key that may be in the chunk
    condition: str = ""  #: SQL condition of the signal; "" for none
    index: str = "PRIMARY"  #: index that the SELECT must use. It begins with `columns`. "": the server chooses
    #: those of `columns` that run from their greatest value down; "<" follows that order
    descending: tuple[str, ...] = ()
    first: Key | None = None  #: least values of leading columns, whatever the order; None for no limit
    last: Key | None = None  #: greatest values of leading columns, whatever the order; None for no limit
    every: int = 0  #: one row in so many, by a hash of `columns`; 0: all rows
    seed: int = 0  #: part of that hash
    #: file with a list of keys; "" for none. `lower` and `upper` are then places in the list, from 0: a chunk has the
    #: keys from `lower` on, without `upper`. The columns of the keys are `columns`.
    keys: str = ""
    deletes: bool = False  #: whether a key of the list that the table does not have becomes a deletion


def ordering_columns(shape: TableShape, names: tuple[str, ...]) -> tuple[Column, ...]:
    """Return the columns of `shape` with these names.

    Raise KeyError if a column is missing, because the table has changed.
    """
    by_name = {column.name: column for column in shape.columns}
    return tuple(by_name[name] for name in names)


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The result of reading a chunk, as the window's manifest has it: the rows and the high watermark, or an error."""

    rows: int = 0  #: rows that the SELECT returned
    bytes: int = 0  #: bytes of these rows' values in memory
    seconds: float = 0.0  #: duration of the SELECT, without the wait for the low watermark
    high_file: str = ""  #: binlog file of the high watermark: the end of the binlog after the SELECT
    high_pos: int = 0  #: byte of `high_file` where the binlog ended
    server_uuid: str = ""  #: name of the binlog that `high_file` belongs to (see `events.BinlogPosition`)
    error: str = ""  #: "" if the chunk was read, else `kind: message`; `snapshot.failures` has the kinds
    #: Name of the window file; may be "". It is named here so that a late writer (a zombie task) cannot replace rows
    #: that were judged by this result.
    file: str = ""
    record_bytes: int = 0  #: bytes of all keys and values of the rows' records
    parts: int = 1  #: number of parts that the rows are cut into; a part is the unit of release
    absent: int = 0  #: keys of the chunk's list that the table did not have


@dataclass(frozen=True, slots=True)
class ChunkTime:
    """The duration of a chunk's SELECT."""

    rows: int  #: number of rows that the chunk was planned for
    seconds: float  #: duration of the SELECT


@dataclass(frozen=True, slots=True)
class Window:
    """A chunk in flight: planned in one batch, read at any time after that, and sent in later batches."""

    id: str  #: name of its files, never used twice
    scan: int  #: number of the scan that the window belongs to
    table: TableId  #: table of the chunk
    signal: str  #: correlation id: id of the signal that asked for the table
    lower: Key | None  #: as in `Chunk`
    upper: Key  #: as in `Chunk`
    rows: int  #: number of rows that the chunk was planned for
    batch: int  #: number of the batch that planned the window
    attempt: int = 0  #: earlier attempts to read this range that failed
    faults: int = 0  #: those failures that count against the range
    lost: int = 0  #: those failures that gave no result, because the reader or the job died
    #: result of the chunk; None until the planner has seen the manifest. Offsets store it as `reading`.
    result: Annotated[ChunkResult | None, Field(alias="reading")] = None
    planned_ms: int = 0  #: when the window was planned, in ms since 1970
    read_batch: int = 0  #: number of the batch whose planning saw the manifest; 0 before
    passed: bool = False  #: whether the end of a batch has reached the high watermark
    sent: int = 0  #: number of parts that were sent
    doublings: int = 0  #: how often the time limit of the SELECT is doubled (`sizing.select_seconds`)

    @property
    def parts_left(self) -> int:
        """The number of parts that were not sent yet; 0 before the chunk is read."""
        return self.result.parts - self.sent if self.result is not None else 0

    @property
    def part_bytes(self) -> int:
        """The average bytes of a part's keys and values; 0 before the chunk is read."""
        return self.result.record_bytes // max(1, self.result.parts) if self.result is not None else 0


def low_watermark_of(end: StreamPosition) -> GtidSet:
    """Return the low watermark for chunks of the batch that ends at `end`: the GTIDs of everything sent up to there.

    A reader waits until these GTIDs are executed before it starts the SELECT.

    The set has what is delivered at the batch's **end**, not at its start. Batch *n* sends its own events, but only
    keys of batch *n+1* and later are discarded. So the SELECT must see what batch *n* brings.

    The set also has the transaction that the end cuts in two. Batch *n* sends its first events, though its GTID is
    delivered only with its last event. Without the wait the SELECT could return a row as it was before these events.
    The other events of the transaction come in batch *n+1* and discard their keys, which does no harm.

    The wait ends, because all these transactions are in the binlog and the server is about to execute them. The reader
    limits the wait nevertheless.
    """
    return end.delivered | GtidSet.parse(end.open_gtid) if end.open_gtid else end.delivered


def released_by(window: Window, end: StreamPosition, server_uuid: str) -> bool:
    """Return True if the end of this batch, or of an earlier one, has reached the window's high watermark.

    The batch ends at `end` in the binlog `server_uuid`. Positions of two binlogs cannot be compared. After a failover,
    or if the server has begun its binlog anew, the chunk is read again (`read_elsewhere`). An end inside a transaction
    is a position inside it, so all earlier transactions are delivered completely.
    """
    result = window.result
    return window.passed or (
        result is not None
        and not result.error
        and result.server_uuid == server_uuid
        and end.reached(result.high_file, result.high_pos)
    )


def read_elsewhere(window: Window, server_uuid: str) -> bool:
    """Return True if the chunk must be read again: its high watermark is in another binlog than the tail's.

    The tail reads the binlog `server_uuid`. The other binlog is that of another server, or an earlier one of the same
    server. While the tail has no connection yet, `server_uuid` is "": the window is kept, and not released either. A
    window that has passed its high watermark needs no position any more: what its SELECT saw was delivered before the
    failover.
    """
    result = window.result
    return bool(server_uuid) and result is not None and not window.passed and result.server_uuid != server_uuid


def spoiled_by(window: Window, change: SchemaChange) -> bool:
    """Return True if the DDL or TRUNCATE `change` touches the table of a window of which no part was sent.

    The window's rows may have another shape, or be gone without events. Call this for windows of earlier batches only:
    a change in the window's own batch is executed before its SELECT. If a part was sent, the window had passed its high
    watermark before this batch began, so the change is later than the SELECT.
    """
    return change.touches(window.table) and not window.sent


def finished_by(window: Window, change: SchemaChange) -> bool:
    """Return True if the DDL or TRUNCATE `change` touches the table of a window of which a part was sent.

    The rest of the window is then sent with the same batch, whatever its budget: a batch's window rows go in front of
    its events.
    """
    return change.touches(window.table) and window.sent > 0


def disturbed_by(window: Window, changed: Collection[TableId]) -> bool:
    """Return True if events upset a window whose rows nothing tells apart, and of which no part was sent.

    `changed` are the tables with events in this batch. Call this for windows of earlier batches only: the SELECT of a
    window that this batch plans sees what this batch brings.
    """
    return window.table in changed and not window.sent


def finished_by_events(window: Window, changed: Collection[TableId]) -> bool:
    """Return True if the rest of a window whose rows nothing tells apart must go in front of this batch's events.

    A part was sent before, so these events are later than the SELECT. `changed`: as in `disturbed_by`.
    """
    return window.table in changed and window.sent > 0


def discard_batches(window: Window, release_batch: int) -> range:
    """Return the numbers of the batches whose recorded keys discard rows of `window` that batch `release_batch` sends.

    The sink has the keys of the releasing batch itself at hand, so this batch is not among them.
    """
    return range(window.batch + 1, release_batch)
