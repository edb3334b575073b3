"""The questions that the engine asks the server while it plans, and the possible answers.

The planner answers them in autocommit, with a time limit for every statement. In tests a fake answers. If a question
takes long, the planner works on it beside the stream and answers `NotYet`. The engine then asks the same question again
with a later batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from incsnap.gtid import GtidSet
from incsnap.snapshot.commands import ChosenRows, DataCollection
from incsnap.snapshot.keys import Key
from incsnap.tables import TableId


@dataclass(frozen=True, slots=True)
class Describe:
    """The question which columns order the chunks of a table. Answer: KeyOrder, Refused, Failed or NotYet.

    The columns are the surrogate key and, after it, the columns that tell rows apart, if there are any. Without a
    surrogate key they are the primary key, or the columns of message.key.columns if the table has no primary key.
    Refused has the status NO_PRIMARY_KEY if nothing tells rows apart and there is no surrogate key, or if the table has
    no such column. It has SQL_EXCEPTION if the server does not understand the condition
    (`chunk_query.condition_probe`). It has SKIPPED if the rows that the signal chooses cannot be found.

    The answer about a list of keys names the file of the list, and its columns are those of the keys.
    """

    table: TableId  #: table to describe
    surrogate: str  #: column that orders the chunks instead of the key; "" for the key
    condition: str  #: SQL condition of the signal; "" for none
    #: GTIDs that must be executed before the answer. Otherwise the answer may be the key before a DDL that the stream
    #: has passed, and the engine would not ask again. It is not compared: the same question of a later batch is equal.
    low_watermark: GtidSet = field(compare=False)
    #: Batch that was the first to ask. Its low watermark is enough: after a DDL in the stream the engine begins a new
    #: question. So a table begins even if the server never reaches the newest low watermark in time.
    asked: int = 0
    chosen: ChosenRows | None = None  #: rows that the signal chooses; None for all
    #: file of the list of keys, if the list was written down before; "" if not
    keys: str = ""

    @property
    def lists_keys(self) -> bool:
        """True if the answer takes the reading of a list of keys."""
        return bool(self.keys) or (self.chosen is not None and self.chosen.lists_keys)


@dataclass(frozen=True, slots=True)
class MaximumKey:
    """The question for the last key of a table in its order (`chunk_query.maximum_key`).

    Answer: Key; None if the table is empty; Failed or NotYet.
    """

    table: TableId  #: table to ask about
    columns: tuple[str, ...]  #: ordering columns
    index: str  #: index that begins with `columns`; "" if none does
    #: GTIDs that must be executed before the answer (WAIT_FOR_EXECUTED_GTID_SET). Otherwise a row that was committed
    #: just before the signal might not be visible yet, lie above the maximum, and not be read.
    low_watermark: GtidSet = field(compare=False)
    descending: tuple[str, ...] = ()  #: as in `KeyOrder`
    asked: int = 0  #: as in `Describe`; rows of later batches come by the binlog
    first: Key | None = None  #: as in `KeyOrder`
    last: Key | None = None  #: as in `KeyOrder`


@dataclass(frozen=True, slots=True)
class NextBoundary:
    """The question for the end of the next chunk of a table (`chunk_query.next_boundary`).

    Answer: Key; None if fewer than `rows` rows are left; Failed or NotYet. Every key of the table at any moment is a
    correct boundary, because boundaries only divide the range. So this question needs no low watermark and may be
    answered late.
    """

    table: TableId  #: table to ask about
    columns: tuple[str, ...]  #: ordering columns
    index: str  #: index that begins with `columns`; "" if none does
    after: Key | None  #: end of the previous chunk; None for the first chunk
    maximum: Key  #: last key that the answer may be
    rows: int  #: number of rows of the chunk: the answer is the `rows`-th key above `after`
    beside: bool = False  #: whether the answer takes long, so that the planner must look for it beside the stream
    descending: tuple[str, ...] = ()  #: as in `KeyOrder`
    first: Key | None = None  #: as in `KeyOrder`
    last: Key | None = None  #: as in `KeyOrder`


@dataclass(frozen=True, slots=True)
class Opened:
    """The question whether a table can be read, or whether LOCK TABLES or an ALTER blocks it.

    Answer: None if it can be read, Failed if it is blocked, or NotYet. The engine asks about a table that was blocked
    before, so that the stream does not wait for it. The planner answers beside the stream if it can.
    """

    table: TableId  #: table to ask about


@dataclass(frozen=True, slots=True)
class LookAhead:
    """An announcement of questions: Describe, MaximumKey and the first NextBoundary of each of these tables.

    Answer: None. The engine still asks these questions one by one. Asked together, those of thousands of tables cost a
    tenth of the time.
    """

    collections: tuple[DataCollection, ...]  #: tables that the engine is about to ask about
    rows: int  #: number of rows for NextBoundary
    low_watermark: GtidSet  #: GTIDs that must be executed before the answers


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """An answer: the columns that order the chunks of a table."""

    columns: tuple[str, ...]  #: ordering columns
    fingerprint: str  #: text of `keys.table_fingerprint`
    index: str = "PRIMARY"  #: index that begins with `columns`; "" if none does
    descending: tuple[str, ...] = ()  #: those of `columns` that are read from their greatest value down
    is_identified: bool = True  #: whether columns tell the table's rows apart
    first: Key | None = None  #: least values of leading columns that the signal chooses; None for no limit
    last: Key | None = None  #: greatest values of leading columns that the signal chooses; None for no limit
    keys: str = ""  #: file with the signal's list of keys, whose columns are `columns`; "" for none
    count: int = 0  #: how many keys that list has


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer: the table cannot be read."""

    status: str  #: status of TABLE_SCAN_COMPLETED: UNKNOWN_SCHEMA, NO_PRIMARY_KEY, ...
    reason: str  #: reason, for people


@dataclass(frozen=True, slots=True)
class Failed:
    """An answer: the question could not be answered."""

    message: str  #: reason, for people
    permanent: bool = False  #: whether it is useless to ask again, because the statement is wrong


@dataclass(frozen=True, slots=True)
class NotYet:
    """An answer: the planner works on the question. Ask the same question again with the next batch."""

    is_late: bool = False  #: whether the question takes so long that other tables should begin meanwhile


Question = Describe | MaximumKey | NextBoundary | Opened | LookAhead
#: A question that may be answered beside the stream, so that no batch waits for the answer.
BesideQuestion = Describe | MaximumKey | NextBoundary | Opened
Answer = KeyOrder | Refused | Failed | NotYet | Key | None
