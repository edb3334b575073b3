"""Answers the engine's questions from MySQL: what orders a table, where it ends, where the next chunk ends.

The stream's next batch waits for what is asked on the planner's own connection: ``BATCH_SECONDS`` at most for all the
questions of a batch. What is known to take long, or turns out to, is asked beside the stream (``boundary_search``): a
table without an index for its order, one whose last answer was slow, one that is locked, a low watermark that is not
reached. For many tables at once the same is asked in a few statements (``LookAhead``): about a tenth of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from pymysql.connections import Connection
from pymysql.constants import ER

from incsnap.envelope.column_rules import ColumnRules
from incsnap.errors import ChunkFailed, IncsnapError, ServerUnreachable
from incsnap.gtid import GtidSet
from incsnap.mysql.catalog import collations_of, indexes_of, shapes_of
from incsnap.mysql.error_codes import CHANGED, IN_THE_WAY
from incsnap.mysql.session import QueryRefusedError, query
from incsnap.mysql.watermarks import wait_until_executed
from incsnap.planner.table_ordering import CatalogEntry, TableRefused, check_types, ordering_of
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.chunk_query import condition_probe, maximum_key, next_boundary
from incsnap.snapshot.keys import Key, table_fingerprint
from incsnap.snapshot.questions import (
    Answer,
    BesideQuestion,
    Describe,
    Failed,
    KeyOrder,
    LookAhead,
    MaximumKey,
    NextBoundary,
    Opened,
    Question,
    Refused,
)
from incsnap.tables import Column, TableId

#: Milliseconds for one boundary, where nobody waits: an index walk of 100,000 keys takes 26 ms on a warm server.
_QUESTION_MS = 5_000
#: The same beside the stream without an index, where the table is sorted: 1.0 s for 2 million rows on an idle server.
_SORT_MS = 60_000
#: Seconds that a batch waits for all its questions.
BATCH_SECONDS = 0.05
#: The same for ``LookAhead`` where nobody writes, and so nobody waits.
QUIET_SECONDS = 0.5
#: Seconds below which what is left of that is too short for a question: it would be given up for a busy processor.
_LEAST_SECONDS = 0.01
#: Seconds to wait for a table that is locked; the session's own bound is for chunks, for which no batch need wait.
_LOCK_SECONDS = 1
#: Milliseconds for opening a table beside the stream: a bound of the whole statement, for the lock's own is a second at
#: the least. Tables that are not locked wait behind one that is.
_OPEN_MS = 200
#: Errors that pass: somebody in the way, table changed, out of time.
_PASSING = IN_THE_WAY | {ER.TABLE_DEF_CHANGED, ER.QUERY_TIMEOUT}
#: What a statement ends with whose time was cut short for the batch. A metadata lock that is waited for ends so too.
_TOO_LONG = IN_THE_WAY | {ER.QUERY_TIMEOUT}
#: Keys that are selected by one statement: it takes 8 ms for those of 64 tables, 64 statements take 80.
_TOGETHER = 64
#: Seconds to wait for a low watermark where nobody is beside the stream; the question is asked again later.
_LOW_WATERMARK_SECONDS = 0.2

_NO_INDEX = "without an index that begins with {}, its rows cannot be put in order in time: create one"


class SearchBeside(Protocol):
    """What is needed of ``planner.boundary_search.BoundarySearch``."""

    @property
    def is_able(self) -> bool: ...
    def __call__(self, question: BesideQuestion) -> Answer: ...
    def is_asked(self, question: BesideQuestion) -> bool: ...
    def is_slow(self, table: TableId) -> bool: ...
    def took(self, table: TableId, seconds: float) -> None: ...


class _TakesLongError(Exception):
    """The batch cannot wait for the answer."""


class Answers:
    """The answers to the questions of one batch.

    ``connection`` is the planner's; a lost one raises ``ServerUnreachable`` through the engine's caller. ``beside``:
    who answers what the batch does not wait for; without it everything is waited for. ``is_quiet``: nobody has written
    for a while. ``is_patient``: nobody waits, so a table may be sorted for as long as that takes.
    """

    def __init__(
        self,
        connection: Connection[Any],
        rules: ColumnRules,
        beside: SearchBeside | None = None,
        *,
        is_quiet: bool = False,
        is_patient: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._beside = beside
        self._rules = rules
        self._clock = clock
        self._is_quiet = is_quiet
        self._is_patient = is_patient
        #: Seconds that the batch may still wait; None where it waits for everything.
        self._left: float | None = None
        if beside is not None and beside.is_able:
            self._left = BATCH_SECONDS
        #: When the batch has waited long enough.
        self._until = 0.0
        # Within one planning nothing is looked for twice; the next planning asks anew.
        self._columns: dict[tuple[TableId, tuple[str, ...]], tuple[Column, ...]] = {}
        self._catalog: dict[TableId, CatalogEntry] = {}
        self._keys: dict[str, Key | None] = {}
        self._reached: GtidSet | None = None
        self._late: ChunkFailed | None = None

    def __call__(self, question: Question) -> Answer:
        """Return the answer, or ``NotYet`` where the batch does not wait for it."""
        if self._beside is None or self._left is None:
            return self._answered(question)
        if isinstance(question, LookAhead):
            self._left = QUIET_SECONDS if self._is_quiet else self._left
            with suppress(_TakesLongError):  # each is asked about by itself
                self._timed(question)
            self._left = min(self._left, BATCH_SECONDS)
            return None
        if self._is_for_beside(question, self._beside):
            return self._beside(question)
        began = self._clock()
        try:
            return self._timed(question)
        except _TakesLongError:
            return self._beside(question)
        finally:
            self._beside.took(question.table, self._clock() - began)

    def _is_for_beside(self, question: BesideQuestion, beside: SearchBeside) -> bool:
        """Whether nobody tries to answer the question in the batch's time."""
        match question:
            case Opened() | NextBoundary(beside=True):
                return True
            case MaximumKey(index="") | NextBoundary(index="") if not self._is_known(question):
                return True
        if beside.is_asked(question):
            return True
        return not self._is_known(question) and (beside.is_slow(question.table) or (self._left or 0.0) < _LEAST_SECONDS)

    def _is_known(self, question: BesideQuestion) -> bool:
        """Whether ``LookAhead`` has found the answer."""
        match question:
            case Describe(condition=""):
                return question.table in self._catalog
            case MaximumKey() if (question.table, question.columns) in self._columns:
                return self._order_of(question).maximum_key() in self._keys
            case NextBoundary() if (question.table, question.columns) in self._columns:
                return self._order_of(question).boundary(question.after, question.maximum, question.rows) in self._keys
        return False

    def _timed(self, question: Question) -> Answer:
        """Answer on the planner's connection, and count the time that the batch waits."""
        began = self._clock()
        self._until = began + (self._left or 0.0)
        try:
            return self._answered(question)
        finally:
            self._left = (self._left or 0.0) - (self._clock() - began)

    def _answered(self, question: Question) -> Answer:
        try:
            return self._answer(question)
        except ServerUnreachable:
            raise
        except TableRefused as refused:
            return Refused(refused.status, refused.reason)
        except QueryRefusedError as error:
            if self._left is not None and error.code in _TOO_LONG:
                raise _TakesLongError from error
            match question:
                case MaximumKey(index="") | NextBoundary(index="") if error.code == ER.QUERY_TIMEOUT:
                    return Failed(_NO_INDEX.format(", ".join(question.columns)), permanent=True)
            return Failed(error.message, permanent=error.code not in _PASSING | CHANGED)
        except (ChunkFailed, KeyError, ValueError) as error:  # ValueError: the key's type has changed since
            return Failed(str(error))
        except IncsnapError as error:
            return Failed(error.message, permanent=True)

    def _answer(self, question: Question) -> Answer:
        match question:
            case LookAhead():
                self._look_ahead(question)
                return None
            case Describe():
                self._wait(question.low_watermark)
                return self._described(question)
            case MaximumKey():
                self._wait(question.low_watermark)
                return self._key(self._order_of(question).maximum_key(), question.index)
            case Opened():
                self._open(question.table)
                return None
            case NextBoundary(_, _, index, after, maximum, rows):
                return self._key(self._order_of(question).boundary(after, maximum, rows), index)

    def _within_ms(self, most_ms: int) -> int:
        """Return the time for one statement: what is left of the batch's, or ``most_ms`` where nobody waits."""
        if self._left is None:
            return most_ms
        return max(1, min(most_ms, round((self._until - self._clock()) * 1000)))

    def _described(self, question: Describe) -> KeyOrder:
        """Return what orders the table. Raise ``TableRefused``, or ``QueryRefusedError`` where the condition cannot be
        tried now."""
        entry = self._entry(question.table)
        if entry is None:
            raise TableRefused(notes.UNKNOWN_SCHEMA, "the table does not exist, or the user may not see it")
        view = check_types(entry, self._rules)
        if question.condition:
            self._try_condition(question.table, question.condition)
        order = ordering_of(entry, view, question.surrogate)
        names = tuple(column.name for column in order.columns)
        self._columns[(question.table, names)] = order.columns
        identity = [entry.shape.columns[place] for place in view.identity]
        key = [field.column for field in view.key]
        fingerprint = table_fingerprint(order.columns, identity, key, entry.collations, order.descending)
        return KeyOrder(names, fingerprint, order.index, order.descending)

    def _try_condition(self, table: TableId, condition: str) -> None:
        """Raise ``TableRefused`` where the server does not understand the condition."""
        try:
            query(self._connection, _bounded(condition_probe(table, condition), self._within_ms(_QUESTION_MS)))
        except QueryRefusedError as error:
            if error.code in _PASSING:
                raise
            raise TableRefused(notes.SQL_EXCEPTION, f"its additional condition is refused: {error.message}") from None
        except UnicodeError as error:
            raise TableRefused(notes.SQL_EXCEPTION, f"its additional condition is no text: {error}") from None

    def _wait(self, low_watermark: GtidSet) -> None:
        """Wait for the low watermark, once in a planning: what was reached stays so, and for what was not the batch has
        waited long enough."""
        if low_watermark == self._reached:
            return
        if self._late is None:
            try:
                seconds = self._within_ms(round(_LOW_WATERMARK_SECONDS * 1000)) / 1000
                wait_until_executed(self._connection, low_watermark, seconds)
            except ServerUnreachable:
                raise
            except ChunkFailed as error:
                self._late = error
        if self._late is not None:
            if self._left is not None:
                raise _TakesLongError
            raise self._late
        self._reached = low_watermark

    def _open(self, table: TableId) -> None:
        """Raise ``ChunkFailed`` where the table is locked. Any other error is for whoever asks behind it."""
        try:
            query(self._connection, _bounded(condition_probe(table, ""), _OPEN_MS))
        except QueryRefusedError as error:
            if error.code in _PASSING:
                late = f"{table} is locked, or takes longer than {_OPEN_MS} ms to be opened: {error.message}"
                raise ChunkFailed(late) from None

    def _entry(self, table: TableId) -> CatalogEntry | None:
        if table not in self._catalog:
            self._catalog |= _catalog(self._connection, [table])
        return self._catalog.get(table)

    def _look_ahead(self, coming: LookAhead) -> None:
        """What cannot be had so is asked for table by table."""
        self._wait(coming.low_watermark)
        self._catalog |= _catalog(self._connection, list(dict.fromkeys(each.table for each in coming.collections)))
        #: Tables whose keys are alike: only those of one type and collation can be selected by one statement.
        alike: dict[tuple[object, ...], list[_Ordered]] = {}
        for each in coming.collections:
            # With its condition a table is described when its turn has come.
            ordered = self._ordered(Describe(each.table, each.surrogate, "", coming.low_watermark))
            if ordered is not None:
                collations = self._catalog[each.table].collations
                kind = tuple((column.type, column.charset, collations.get(column.name)) for column in ordered.columns)
                alike.setdefault(kind, []).append(ordered)
        for tables in alike.values():
            maxima = [(each, each.maximum_key()) for each in tables]
            self._learn([sql for _, sql in maxima])
            self._learn(
                [
                    each.boundary(None, maximum, coming.rows)
                    for each, sql in maxima
                    if (maximum := self._keys.get(sql)) is not None
                ]
            )

    def _ordered(self, question: Describe) -> _Ordered | None:
        """What orders its rows. None where there is no such table, or it cannot be read; or without an index: each
        statement may sort such a table then, and takes its time alone."""
        if question.table not in self._catalog:
            return None
        try:
            described = self._described(question)
        except TableRefused:
            return None
        columns = self._columns[(question.table, described.columns)]
        return _Ordered(question.table, columns, described.index, described.descending) if described.index else None

    def _learn(self, statements: Sequence[str]) -> None:
        """The keys that each of these selects, which have as many columns."""
        for begin in range(0, len(statements), _TOGETHER):
            if self._left is not None and self._clock() > self._until:
                return  # the batch has waited long enough
            part = statements[begin : begin + _TOGETHER]
            numbered = (sql.replace("SELECT ", f"SELECT {number}, ", 1) for number, sql in enumerate(part))
            try:
                together = " UNION ALL ".join(f"({sql})" for sql in numbered)
                rows = query(self._connection, _bounded(together, self._within_ms(_QUESTION_MS)))
            except QueryRefusedError:
                continue  # one of them is gone, or locked: which, is found out one by one
            self._keys |= dict.fromkeys(part)
            self._keys |= {part[int(row[0])]: _canonical(row[1:]) for row in rows}

    def _ordering(self, table: TableId, names: tuple[str, ...]) -> Sequence[Column]:
        columns = self._columns.get((table, names))
        if columns is None:
            entry = self._entry(table)
            if entry is None:
                raise KeyError(f"table {table} does not exist")
            by_name = {column.name: column for column in entry.shape.columns}
            columns = self._columns[(table, names)] = tuple(by_name[name] for name in names)
        return columns

    def _order_of(self, question: MaximumKey | NextBoundary) -> _Ordered:
        columns = self._ordering(question.table, question.columns)
        return _Ordered(question.table, columns, question.index, question.descending)

    def _key(self, sql: str, index: str) -> Key | None:
        if sql in self._keys:
            return self._keys[sql]
        sorts = self._is_patient and not index
        rows = query(self._connection, _bounded(sql, self._within_ms(_SORT_MS if sorts else _QUESTION_MS)))
        return _canonical(rows[0]) if rows else None


@dataclass(frozen=True, slots=True)
class _Ordered:
    table: TableId
    columns: Sequence[Column]
    index: str
    descending: tuple[str, ...]

    def maximum_key(self) -> str:
        return maximum_key(self.table, self.columns, index=self.index, descending=self.descending)

    def boundary(self, after: Key | None, maximum: Key, rows: int) -> str:
        return next_boundary(
            self.table, self.columns, after, maximum, rows, index=self.index, descending=self.descending
        )


def _catalog(connection: Connection[Any], tables: Sequence[TableId]) -> dict[TableId, CatalogEntry]:
    """What the catalog says of those of ``tables`` that exist."""
    collations, indexes = collations_of(connection, tables), indexes_of(connection, tables)
    shapes = shapes_of(connection, tables)
    return {
        table: CatalogEntry(shape, collations.get(table, {}), indexes.get(table, ())) for table, shape in shapes.items()
    }


def _canonical(row: Sequence[Any]) -> Key:
    return tuple(None if value is None else str(value) for value in row)


def _bounded(sql: str, within_ms: int) -> str:
    hints = f"MAX_EXECUTION_TIME({within_ms}) SET_VAR(lock_wait_timeout={_LOCK_SECONDS})"
    return sql.replace("SELECT ", f"SELECT /*+ {hints} */ ", 1)
