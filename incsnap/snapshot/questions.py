"""What the engine asks while it plans, and what it may be told. It asks; the planner reaches.

Answered by the planner, in autocommit, with a bound of time on every statement; a fake answers in tests. What takes
long is looked into beside the stream: then the answer is NotYet, and the same question is asked again with a later
batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from incsnap.gtid import GtidSet
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.keys import Key
from incsnap.tables import TableId


@dataclass(frozen=True, slots=True)
class Describe:
    """Which columns order the chunks of ``table``? Answer: KeyOrder, Refused, Failed or NotYet.

    With ``surrogate`` that column, with which an index must begin, and behind it what tells rows apart; without it the
    primary key, or what message.key.columns names in a table that has none. There must be something that tells rows
    apart, else Refused NO_PRIMARY_KEY. ``condition`` must be understood by the server
    (``chunk_query.condition_probe``), else Refused SQL_EXCEPTION.

    ``low_watermark`` must be executed first, as for MaximumKey: otherwise the key may be that before a DDL which the
    stream has passed, and nothing would ask again. ``asked``: the batch that was the first to ask. Its low watermark is
    enough: a DDL that the stream passes meanwhile makes it another question. So a table is begun also where the server
    never reaches the newest low watermark in time.
    """

    table: TableId
    surrogate: str
    condition: str
    low_watermark: GtidSet = field(compare=False)
    asked: int = 0


@dataclass(frozen=True, slots=True)
class MaximumKey:
    """The last key of ``table`` in its order (``chunk_query.maximum_key``). Answer: Key, None when it is empty, or
    Failed or NotYet. ``descending``: as in ``KeyOrder``.

    ``low_watermark`` must be executed first (WAIT_FOR_EXECUTED_GTID_SET): otherwise a row committed just before the
    signal might not be visible yet, lie above the maximum, and not be read. ``asked``: as in ``Describe``; the rows of
    later batches come by the log.
    """

    table: TableId
    columns: tuple[str, ...]
    index: str
    low_watermark: GtidSet = field(compare=False)
    descending: tuple[str, ...] = ()
    asked: int = 0


@dataclass(frozen=True, slots=True)
class NextBoundary:
    """The ``rows``-th key above ``after`` up to ``maximum`` (``chunk_query.next_boundary``).

    Answer: Key, None when fewer rows are left, or Failed. Any key of the table at any moment is a right answer:
    boundaries only cut the range, so this question needs no low watermark. For the same reason it may be looked into
    ``beside`` the stream: then the answer may be NotYet.
    """

    table: TableId
    columns: tuple[str, ...]
    index: str
    after: Key | None
    maximum: Key
    rows: int
    beside: bool = False
    descending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Opened:
    """Does nobody keep the server from reading ``table``, as LOCK TABLES or an ALTER does? Answer: None, or Failed.

    Asked of a table that was in the way before, in front of what the stream would wait for; it is always looked into
    beside the stream where that can be done: then the answer may be NotYet.
    """

    table: TableId


@dataclass(frozen=True, slots=True)
class LookAhead:
    """Which of these are about to be asked about: Describe, MaximumKey and the first NextBoundary of each, for ``rows``
    rows. Answer: None. Nothing follows from it; asked together, thousands of tables cost a tenth."""

    collections: tuple[DataCollection, ...]
    rows: int
    low_watermark: GtidSet


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """``columns`` order the chunks, ``index`` begins with them ("": none does).

    ``fingerprint``: ``keys.table_fingerprint``. ``descending``: those of ``columns`` that are read from their greatest
    value down.
    """

    columns: tuple[str, ...]
    fingerprint: str
    index: str = "PRIMARY"
    descending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The table cannot be read: a status of TABLE_SCAN_COMPLETED (UNKNOWN_SCHEMA, NO_PRIMARY_KEY, ...) and why."""

    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer. ``permanent``: asking again will not help (the statement is wrong); else it is asked again later."""

    message: str
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class NotYet:
    """It is being looked into: the same question is to be asked again with the next batch."""


Question = Describe | MaximumKey | NextBoundary | Opened | LookAhead
BesideQuestion = Describe | MaximumKey | NextBoundary | Opened
"""What may be looked into beside the stream."""
Answer = KeyOrder | Refused | Failed | NotYet | Key | None
