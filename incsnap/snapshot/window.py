"""The window: a chunk's rows between two watermarks, held back until the log has passed what the SELECT may have seen.

Everything that decides whether a row read by SELECT may be sent is in this file, in small functions.
They know GTIDs, positions and tables; they know no SQL, no rows, no Kafka and no clock.

MySQL commits in stages: written to the binlog, *sent* to replicas (us), *visible* to SELECT, and last in
*gtid_executed*. So an event may arrive before its row can be selected, and a row may be selected before its GTID is
executed. One watermark cannot be honest about both; hence two:

* **Low**: before the SELECT of a chunk planned in batch *n*, wait until all that batch *n* and earlier ones send is
  executed (``low_watermark_of``). Then the SELECT cannot return a row older than an event that is already on its way to
  Kafka. The chunk is read beside the stream, at any time after *n* was planned; a later batch's low watermark does as
  well.
* **High**: after the SELECT, the end of the *binlog*, which runs ahead of visibility. Whatever the SELECT saw lies
  before it (``gtid_executed`` may lie behind what the SELECT saw).
* **Release** from the first batch on whose end has passed the high watermark (``released_by``), in **parts**: each
  batch *r* sends as many as its budget allows.
* **Discard** every row of a part whose key has an event in batches *n+1 .. r*, *r* being the batch that sends the
  part: the log wins. The sink holds the keys of batch *r* itself and wrote down those of *n+1 .. r-1*
  (``discard_batches``), also while the chunk was still being read.
* **DDL and TRUNCATE** in batches *n+1 .. r* drop a window of which nothing was sent, and its chunk is read again
  (``spoiled_by``). A window of which a part was sent has passed its high watermark before, so the statement is later
  than its SELECT: what is left of it is sent at once, in front of the batch's events.

Why no key goes back in time, and none is lost. Let row *k* be read in version *v* and be sent in batch *r*, alone or
in a part.
Events of batches up to *n* are executed before the SELECT, so *v* is that version or newer. No event of *k* lies in
*n+1 .. r*, else the row had been discarded. *v* was visible, so it lies before the high watermark, so in a batch up
to *r*, so up to *n*: *v* is exactly the newest version sent. Every later event is newer than *v*. A discarded row is
not lost: its event, which is newer or the same, is sent. A row deleted before the SELECT is not read; its delete is
an event like any other.

A window that is dropped, also one of which parts were sent (records have another form or other partitions now), is
read again by one that is planned in the batch that drops it, or later. What was sent of it in version *v* lay before
the end of the batch that sent it, so before the new one's low watermark: that reads version *v* or a newer one, and
what is said above applies to it. A row may so come twice for a request, never in an older version.

``docs/adr/0001-two-watermarks.md`` has the counter-examples; the mutants in ``tests/property`` show that each rule is
needed.
"""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.keys import Key
from incsnap.tables import Column, TableId, TableShape


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk: rows of ``table`` with ``lower < key <= upper`` that also meet ``condition``.

    ``columns`` names the ordering columns: the primary key, or the surrogate key of the signal and the primary key.
    Those named in ``descending`` come from their greatest value down, and "<" is meant so.
    ``index`` begins with them in this order and is forced; "" leaves the choice to the server.
    ``lower`` is None for the first chunk. ``condition`` is an SQL fragment of the signal, "" for none.
    Chunks that touch cover every row once. The SQL is made in ``chunk_query``.
    """

    table: TableId
    columns: tuple[str, ...]
    lower: Key | None
    upper: Key
    condition: str = ""
    index: str = "PRIMARY"
    descending: tuple[str, ...] = ()


def ordering_columns(shape: TableShape, names: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of ``shape`` called ``names``; ``KeyError`` when one is gone (the shape has changed)."""
    by_name = {column.name: column for column in shape.columns}
    return tuple(by_name[name] for name in names)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the manifest of a window says: the chunk was read, or why not.

    ``high_file``, ``high_pos``: the end of the binlog after the SELECT; ``server_uuid`` says whose binlog, as that of
    the stream does (``events.begun_anew``): the chunk was read on its server, and at its end or behind it.
    ``rows``, ``bytes``, ``seconds``: of the SELECT alone, without the wait before it; they steer the chunk size.
    ``parts``: pieces that the rows were cut into, the unit of release. ``record_bytes``: of all keys and values.
    ``error``: "" or ``kind: message``, see ``snapshot.failures`` for the kinds.
    ``file``: the name of the buffer file, so that a late writer (a zombie task) cannot exchange rows that were
    judged by this reading; may stay "".
    """

    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    high_file: str = ""
    high_pos: int = 0
    server_uuid: str = ""
    error: str = ""
    file: str = ""
    record_bytes: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class ChunkTime:
    """What a chunk's SELECT took."""

    #: what the chunk was cut for
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Window:
    """A chunk in flight: ``lower < key <= upper`` of ``table``, planned in batch ``batch`` and read at any time after.

    ``id`` names its files and is never used twice. ``scan`` is the number of the scan it belongs to, ``signal`` the
    id of the signal that asked (the correlation id). ``rows`` is how many it was cut for. ``attempt`` counts how
    often this range was read before, ``faults`` how often that was the chunk's own fault, ``lost`` how often that came
    to no end: its reader died, or the job. ``doublings``: how often the time of its SELECT is doubled
    (``sizing.select_seconds``). ``planned_ms``: when it was planned. ``reading`` is None until the manifest was seen,
    in batch ``read_batch``. ``passed`` is set once a batch's end has passed its high watermark; ``sent`` is how many of
    its parts were sent.
    """

    id: str
    scan: int
    table: TableId
    signal: str
    lower: Key | None
    upper: Key
    rows: int
    batch: int
    attempt: int = 0
    faults: int = 0
    lost: int = 0
    reading: Reading | None = None
    planned_ms: int = 0
    read_batch: int = 0
    passed: bool = False
    sent: int = 0
    doublings: int = 0

    @property
    def parts_left(self) -> int:
        """Parts that were not sent yet; 0 while nothing was read."""
        return self.reading.parts - self.sent if self.reading is not None else 0

    @property
    def part_bytes(self) -> int:
        """What one part takes in Kafka, about."""
        return self.reading.record_bytes // max(1, self.reading.parts) if self.reading is not None else 0


def low_watermark_of(end: StreamPosition) -> GtidSet:
    """What a chunk planned in a batch waits for before its SELECT: all that the batch, ending at ``end``, sends or has
    sent.

    Delivered at the **end** of the batch, not at its start: the events of batch *n* are sent in batch *n*, but only
    keys of *n+1* and later are discarded, so the SELECT must see what *n* brings. And the transaction that the end
    cuts in two: its first events are sent in batch *n* though its GTID is delivered only with the last one; without
    waiting for it the SELECT could return one of those rows as it was before. Its other events come in *n+1* and
    discard their keys; no harm. The wait ends: both are in the binlog, so the server is about to execute them
    (bounded by a time-out all the same).
    """
    return end.delivered | GtidSet.parse(end.open_gtid) if end.open_gtid else end.delivered


def released_by(window: Window, end: StreamPosition, server_uuid: str) -> bool:
    """True if a batch that ends at ``end`` of the binlog ``server_uuid`` has passed the window's high watermark, or an
    earlier one had.

    Positions of two binlogs cannot be compared: after a failover, or where the server has begun its binlog anew, the
    chunk is read again (``read_elsewhere``).
    An end inside a transaction is a position inside it, so all earlier transactions are wholly delivered.
    """
    reading = window.reading
    return window.passed or (
        reading is not None
        and not reading.error
        and reading.server_uuid == server_uuid
        and end.reached(reading.high_file, reading.high_pos)
    )


def read_elsewhere(window: Window, server_uuid: str) -> bool:
    """True if the chunk was read on another server than the tail is connected to now, or when the server wrote another
    binlog: it is read again.

    While the tail has no connection yet ("") nobody knows; the window is kept, and not released either. A window that
    has passed its high watermark needs no position any more: what its SELECT saw was delivered before the failover.
    """
    reading = window.reading
    return bool(server_uuid) and reading is not None and not window.passed and reading.server_uuid != server_uuid


def spoiled_by(window: Window, change: SchemaChange) -> bool:
    """True if the DDL or TRUNCATE touches the window's table: its rows may be of another shape, or gone without events.

    Only asked of windows of earlier batches. A change in the window's own batch is executed before its SELECT. One of
    which a part was sent had passed before this batch began, so the change is later than its SELECT.
    """
    return change.touches(window.table) and not window.sent


def finished_by(window: Window, change: SchemaChange) -> bool:
    """True if the DDL or TRUNCATE comes behind parts that were sent: the rest is sent with the same batch, whatever its
    budget, because a batch's window rows go in front of its events."""
    return change.touches(window.table) and window.sent > 0


def discard_batches(window: Window, release_batch: int) -> range:
    """Batches whose recorded keys overtake rows of ``window``; those of the releasing batch are at hand in the sink."""
    return range(window.batch + 1, release_batch)
