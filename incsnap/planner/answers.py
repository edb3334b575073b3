"""Answers the engine's questions from MySQL: what orders a table, where it ends, where the next chunk ends.

Index-only statements on the planner's own connection, each bounded in time: the stream's next batch waits for them.
For many tables at once the same is asked in a few statements (``LookAhead``): about a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
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

#: Milliseconds for one boundary: an index walk of 100,000 keys takes 26 ms on a warm server.
_QUESTION_MS = 5_000
#: Seconds to wait for a table that is locked; the session's own bound is for chunks, for which no batch need wait.
_LOCK_SECONDS = 1
#: The same where the stream waits with us: a bound of time of the whole statement, for the lock's own is a second at
#: the least. A table that takes longer to be opened is opened beside the stream (``Opened``).
_OPEN_MS = 100
#: Errors that pass: somebody in the way, table changed, out of time.
_PASSING = IN_THE_WAY | {ER.TABLE_DEF_CHANGED, ER.QUERY_TIMEOUT}
#: Keys that are selected by one statement: it takes 8 ms for those of 64 tables, 64 statements take 80.
_TOGETHER = 64
#: The stream waits with us, so not for long; the question is asked again with a later batch.
_LOW_WATERMARK_SECONDS = 0.2

_NO_INDEX = "without an index that begins with {}, its rows cannot be put in order in time: create one"


class SearchBeside(Protocol):
    """What is needed of ``planner.boundary_search.BoundarySearch``."""

    @property
    def is_able(self) -> bool: ...
    def __call__(self, question: BesideQuestion) -> Answer: ...


class Answers:
    """``connection`` is the planner's; a lost one raises ``ServerUnreachable`` through the engine's caller. ``beside``:
    who answers what need not be answered now; without it all is."""

    def __init__(
        self,
        connection: Connection[Any],
        rules: ColumnRules,
        beside: SearchBeside | None = None,
    ) -> None:
        self._connection = connection
        self._beside = beside
        self._rules = rules
        # Within one planning nothing is looked for twice; the next planning asks anew.
        self._columns: dict[tuple[TableId, tuple[str, ...]], tuple[Column, ...]] = {}
        self._catalog: dict[TableId, CatalogEntry] = {}
        self._keys: dict[str, Key | None] = {}
        self._reached: GtidSet | None = None
        self._late: ChunkFailed | None = None
        #: Tables that were found not to be locked.
        self._open: set[TableId] = set()

    def __call__(self, question: Question) -> Answer:
        try:
            return self._answer(question)
        except ServerUnreachable:
            raise
        except TableRefused as refused:
            return Refused(refused.status, refused.reason)
        except QueryRefusedError as error:
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
                return self._key(question.table, self._order_of(question).maximum_key())
            case Opened():
                return self._opened(question)
            case NextBoundary(beside=True) if self._beside is not None and self._beside.is_able:
                return self._beside(question)
            case NextBoundary(table, _, _, after, maximum, rows):
                return self._key(table, self._order_of(question).boundary(after, maximum, rows))

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
        """Is it one that the server understands?"""
        self._open_soon([table])
        try:
            query(self._connection, _bounded(condition_probe(table, condition)))
        except QueryRefusedError as error:
            if error.code in _PASSING:
                raise
            raise TableRefused(notes.SQL_EXCEPTION, f"its additional condition is refused: {error.message}") from None
        except UnicodeError as error:
            raise TableRefused(notes.SQL_EXCEPTION, f"its additional condition is no text: {error}") from None

    def _wait(self, low_watermark: GtidSet) -> None:
        """Once in a planning: what was reached stays so, and for what was not the batch has waited long enough."""
        if low_watermark == self._reached:
            return
        if self._late is None:
            try:
                wait_until_executed(self._connection, low_watermark, _LOW_WATERMARK_SECONDS)
            except ServerUnreachable:
                raise
            except ChunkFailed as error:
                self._late = error
        if self._late is not None:
            raise self._late
        self._reached = low_watermark

    def _opened(self, question: Opened) -> Answer:
        """Raises ``ChunkFailed`` where the table is locked, and nobody is beside the stream to find it out."""
        answer: Answer = None
        if self._beside is not None and self._beside.is_able:
            answer = self._beside(question)
        else:
            self._try_to_open([question.table], _QUESTION_MS)
        if answer is None:
            self._open.add(question.table)
        return answer

    def _open_soon(self, tables: Sequence[TableId]) -> None:
        """Raises ``ChunkFailed`` where one of them is locked. Whoever is beside the stream need not know before."""
        if self._beside is None:
            return
        unknown = [table for table in dict.fromkeys(tables) if table not in self._open]
        for begin in range(0, len(unknown), _TOGETHER):
            part = unknown[begin : begin + _TOGETHER]
            self._try_to_open(part, _OPEN_MS)
            self._open.update(part)

    def _try_to_open(self, tables: Sequence[TableId], within_ms: int) -> None:
        """Any other error than a lock is for whoever asks behind it."""
        probes = (f"({condition_probe(table, '')})" for table in tables)
        try:
            query(self._connection, _bounded(" UNION ALL ".join(probes), within_ms))
        except QueryRefusedError as error:
            if error.code in _PASSING:
                which = str(tables[0]) if len(tables) == 1 else f"one of {len(tables)} tables"
                late = f"{which} is locked, or takes longer than {within_ms} ms to be opened: {error.message}"
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
            try:
                self._open_soon([each.table for each in tables])
            except ChunkFailed:
                continue  # one of them is locked: which, is found out one by one
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
            part = statements[begin : begin + _TOGETHER]
            numbered = (sql.replace("SELECT ", f"SELECT {number}, ", 1) for number, sql in enumerate(part))
            try:
                rows = query(self._connection, _bounded(" UNION ALL ".join(f"({sql})" for sql in numbered)))
            except QueryRefusedError:
                continue  # one of them is gone: which, is found out one by one
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

    def _key(self, table: TableId, sql: str) -> Key | None:
        if sql in self._keys:
            return self._keys[sql]
        self._open_soon([table])
        rows = query(self._connection, _bounded(sql))
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


def _bounded(sql: str, within_ms: int = _QUESTION_MS) -> str:
    hints = f"MAX_EXECUTION_TIME({within_ms}) SET_VAR(lock_wait_timeout={_LOCK_SECONDS})"
    return sql.replace("SELECT ", f"SELECT /*+ {hints} */ ", 1)
