"""Answers the engine's questions from MySQL: what orders a table, where it ends, where the next chunk ends.

Index-only statements on the planner's own connection, each bounded in time: the stream's next batch waits for them.
For many tables at once the same is asked in a few statements (``LookAhead``): about a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.table_view import view_of
from incsnap.errors import ChunkFailed, IncsnapError, ServerUnreachable, UnsupportedType
from incsnap.gtid import GtidSet
from incsnap.mysql.catalog import collations_of, indexes_of, shapes_of
from incsnap.mysql.connection import QueryRefusedError, query
from incsnap.mysql.fences import low_fence
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.chunk_query import condition_probe, maximum_key, next_boundary
from incsnap.snapshot.keys import Key, key_fingerprint, key_select
from incsnap.snapshot.questions import (
    Answer,
    Describe,
    Described,
    Failed,
    LookAhead,
    MaximumKey,
    NextBoundary,
    Question,
    Refused,
)
from incsnap.tables import Column, TableId, TableShape, quote
from incsnap.types.column_type import describe

#: Milliseconds for one boundary: an index walk of 100,000 keys takes 26 ms on a warm server.
_QUESTION_MS = 5_000
#: Seconds to wait for a table that is locked; the session's own bound is for chunks, for which no batch need wait.
_LOCK_SECONDS = 1
_OUT_OF_TIME = 3024
#: Errors that pass: lock wait, deadlock, KILL QUERY, table changed, out of time.
_PASSING = frozenset({1205, 1213, 1317, 1412, _OUT_OF_TIME})
#: No such column, table, index: a DDL is on its way through the log, and then the table is described anew.
_CHANGED = frozenset({1054, 1146, 1176})
#: Keys that are selected by one statement: it takes 8 ms for those of 64 tables, 64 statements take 80.
_TOGETHER = 64
#: The stream waits with us, so not for long; the question is asked again with a later batch.
_FENCE_SECONDS = 0.2

_NO_IDENTITY = (
    "it has no primary key and no unique key without NULLs, so its rows cannot be told apart: give it one (ALTER TABLE"
    " ... ADD COLUMN my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY), or name columns that no"
    " two of its rows share with message.key.columns"
)
_NO_INDEX = "without an index that begins with {}, its rows cannot be put in order in time: create one"


class Answers:
    """``connection`` is the planner's; a lost one raises ``ServerUnreachable`` through the engine's caller."""

    def __init__(self, connection: Connection[Any], rules: ColumnRules) -> None:
        self._connection = connection
        self._rules = rules
        # Within one planning nothing is looked for twice; the next planning asks anew.
        self._columns: dict[tuple[TableId, tuple[str, ...]], tuple[Column, ...]] = {}
        self._catalog: dict[TableId, _Facts] = {}
        self._keys: dict[str, Key | None] = {}
        self._reached: GtidSet | None = None
        self._late: ChunkFailed | None = None

    def __call__(self, question: Question) -> Answer:
        try:
            match question:
                case LookAhead():
                    self._look_ahead(question)
                    return None
                case Describe():
                    self._wait(question.fence)
                    return self._describe(question)
                case MaximumKey():
                    self._wait(question.fence)
                    columns = self._ordering(question.table, question.columns)
                    return self._key(maximum_key(question.table, columns, index=question.index))
                case NextBoundary():
                    columns = self._ordering(question.table, question.columns)
                    return self._key(
                        next_boundary(
                            question.table,
                            columns,
                            question.after,
                            question.maximum,
                            question.rows,
                            index=question.index,
                        )
                    )
        except ServerUnreachable:
            raise
        except QueryRefusedError as error:
            if error.code == _OUT_OF_TIME and isinstance(question, (MaximumKey, NextBoundary)) and not question.index:
                return Failed(_NO_INDEX.format(", ".join(question.columns)), permanent=True)
            return Failed(error.message, permanent=error.code not in _PASSING | _CHANGED)
        except (ChunkFailed, KeyError, ValueError) as error:  # ValueError: the key's type has changed since
            return Failed(str(error))
        except IncsnapError as error:
            return Failed(error.message, permanent=True)

    def _describe(self, question: Describe) -> Described | Refused | Failed:
        table = question.table
        facts = self._facts(table)
        if facts is None:
            return Refused(notes.UNKNOWN_SCHEMA, "the table does not exist, or the user may not see it")
        shape = facts.shape
        view = view_of(shape, self._rules)
        try:
            for needed in sorted(view.needed):
                describe(shape.columns[needed], table)
        except UnsupportedType as error:
            return Refused(notes.SKIPPED, f"{error.message}. {error.hint}")
        if question.condition:
            try:
                query(self._connection, _bounded(condition_probe(table, question.condition)))
            except QueryRefusedError as error:
                if error.code in _PASSING:
                    return Failed(error.message)
                return Refused(notes.SQL_EXCEPTION, f"its additional condition is refused: {error.message}")
            except UnicodeError as error:
                return Refused(notes.SQL_EXCEPTION, f"its additional condition is no text: {error}")
        if not view.identity:
            # Also with a surrogate key: de-duplication needs what tells rows apart in events too.
            return Refused(notes.NO_PRIMARY_KEY, _NO_IDENTITY)
        columns = tuple(shape.columns[place] for place in view.identity)
        if question.surrogate:
            columns = tuple(column for column in shape.columns if column.name == question.surrogate)
            if not columns:
                return Refused(notes.NO_PRIMARY_KEY, f"it has no column {question.surrogate} (its surrogate-key)")
        index = facts.index_of([column.name for column in columns])
        if index is None and question.surrogate:
            repair = f"CREATE INDEX ... ON {table.sql} ({quote(question.surrogate)})"
            return Refused(notes.NO_PRIMARY_KEY, f"no index begins with its surrogate-key: {repair}")
        try:
            for column in columns:
                key_select(column)
        except UnsupportedType as error:
            return Refused(notes.NO_PRIMARY_KEY, error.message)
        names = tuple(column.name for column in columns)
        self._columns[(table, names)] = columns
        return Described(names, key_fingerprint(columns, facts.collations), index or "")

    def _wait(self, fence: GtidSet) -> None:
        """Once in a planning: what was reached stays so, and for what was not the batch has waited long enough."""
        if fence == self._reached:
            return
        if self._late is None:
            try:
                low_fence(self._connection, fence, _FENCE_SECONDS)
            except ServerUnreachable:
                raise
            except ChunkFailed as error:
                self._late = error
        if self._late is not None:
            raise self._late
        self._reached = fence

    def _facts(self, table: TableId) -> _Facts | None:
        if table not in self._catalog:
            self._catalog |= _facts_of(self._connection, [table])
        return self._catalog.get(table)

    def _look_ahead(self, coming: LookAhead) -> None:
        """What cannot be had so is asked for table by table."""
        self._wait(coming.fence)
        self._catalog |= _facts_of(self._connection, list(dict.fromkeys(each.table for each in coming.collections)))
        #: Tables whose keys are alike: only those of one type and collation can be selected by one statement.
        alike: dict[tuple[object, ...], list[_Ordered]] = {}
        for each in coming.collections:
            facts = self._catalog.get(each.table)
            # With its condition a table is described when its turn has come.
            described = self._describe(Describe(each.table, each.surrogate, "", coming.fence)) if facts else None
            # Without an index each statement may sort its table, and takes its time alone.
            if facts and isinstance(described, Described) and described.index:
                columns = self._columns[(each.table, described.columns)]
                kind = tuple((column.type, column.charset, facts.collations.get(column.name)) for column in columns)
                alike.setdefault(kind, []).append(_Ordered(each.table, columns, described.index))
        for tables in alike.values():
            maxima = [(each, maximum_key(each.table, each.columns, index=each.index)) for each in tables]
            self._learn([sql for _, sql in maxima])
            self._learn(
                [
                    next_boundary(each.table, each.columns, None, maximum, coming.rows, index=each.index)
                    for each, sql in maxima
                    if (maximum := self._keys.get(sql)) is not None
                ]
            )

    def _learn(self, statements: Sequence[str]) -> None:
        """The keys that each of these selects, which have as many columns."""
        for begin in range(0, len(statements), _TOGETHER):
            part = statements[begin : begin + _TOGETHER]
            numbered = (sql.replace("SELECT ", f"SELECT {number}, ", 1) for number, sql in enumerate(part))
            try:
                rows = query(self._connection, _bounded(" UNION ALL ".join(f"({sql})" for sql in numbered)))
            except QueryRefusedError:
                continue  # one of them is locked or gone: which, is found out one by one
            self._keys |= dict.fromkeys(part)
            self._keys |= {part[int(row[0])]: _canonical(row[1:]) for row in rows}

    def _ordering(self, table: TableId, names: tuple[str, ...]) -> Sequence[Column]:
        columns = self._columns.get((table, names))
        if columns is None:
            facts = self._facts(table)
            if facts is None:
                raise KeyError(f"table {table} does not exist")
            by_name = {column.name: column for column in facts.shape.columns}
            columns = self._columns[(table, names)] = tuple(by_name[name] for name in names)
        return columns

    def _key(self, sql: str) -> Key | None:
        if sql in self._keys:
            return self._keys[sql]
        rows = query(self._connection, _bounded(sql))
        return _canonical(rows[0]) if rows else None


@dataclass(frozen=True, slots=True)
class _Facts:
    """``indexes``: see ``catalog.indexes_of``."""

    shape: TableShape
    collations: Mapping[str, str]
    indexes: Sequence[tuple[str, Sequence[str | None]]]

    def index_of(self, columns: Sequence[str]) -> str | None:
        """An index that begins with these columns in this order (the primary key's and unique ones first), or None."""
        wanted = list(columns)
        return next((index for index, found in self.indexes if list(found[: len(wanted)]) == wanted), None)


@dataclass(frozen=True, slots=True)
class _Ordered:
    table: TableId
    columns: Sequence[Column]
    index: str


def _facts_of(connection: Connection[Any], tables: Sequence[TableId]) -> dict[TableId, _Facts]:
    """Of those that exist."""
    collations, indexes = collations_of(connection, tables), indexes_of(connection, tables)
    shapes = shapes_of(connection, tables)
    return {table: _Facts(shape, collations.get(table, {}), indexes.get(table, ())) for table, shape in shapes.items()}


def _canonical(row: Sequence[Any]) -> Key:
    return tuple(None if value is None else str(value) for value in row)


def _bounded(sql: str) -> str:
    hints = f"MAX_EXECUTION_TIME({_QUESTION_MS}) SET_VAR(lock_wait_timeout={_LOCK_SECONDS})"
    return sql.replace("SELECT ", f"SELECT /*+ {hints} */ ", 1)
