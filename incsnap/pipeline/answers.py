"""Answers the engine's questions from MySQL: what orders a table, where it ends, where the next chunk ends.

Index-only statements on the planner's own connection, each bounded in time: the stream's next batch waits for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.table_view import view_of
from incsnap.errors import ChunkFailed, IncsnapError, ServerUnreachable, UnsupportedType
from incsnap.mysql.catalog import shape_of
from incsnap.mysql.connection import QueryRefusedError, query
from incsnap.mysql.fences import low_fence
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.chunk_query import condition_probe, maximum_key, next_boundary
from incsnap.snapshot.keys import Key, key_fingerprint, key_select
from incsnap.snapshot.questions import Answer, Describe, Described, Failed, MaximumKey, NextBoundary, Question, Refused
from incsnap.tables import Column, TableId, quote
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
        # Within one planning no DDL is looked for twice; the next planning asks anew.
        self._columns: dict[tuple[TableId, tuple[str, ...]], tuple[Column, ...]] = {}

    def __call__(self, question: Question) -> Answer:
        try:
            match question:
                case Describe():
                    low_fence(self._connection, question.fence, _FENCE_SECONDS)
                    return self._describe(question)
                case MaximumKey():
                    low_fence(self._connection, question.fence, _FENCE_SECONDS)
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
            if error.code == _OUT_OF_TIME and not isinstance(question, Describe) and not question.index:
                return Failed(_NO_INDEX.format(", ".join(question.columns)), permanent=True)
            return Failed(error.message, permanent=error.code not in _PASSING | _CHANGED)
        except (ChunkFailed, KeyError, ValueError) as error:  # ValueError: the key's type has changed since
            return Failed(str(error))
        except IncsnapError as error:
            return Failed(error.message, permanent=True)

    def _describe(self, question: Describe) -> Described | Refused | Failed:
        table = question.table
        shape = shape_of(self._connection, table)
        if shape is None:
            return Refused(notes.UNKNOWN_SCHEMA, "the table does not exist, or the user may not see it")
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
        index = self._index(table, [column.name for column in columns])
        if index is None and question.surrogate:
            repair = f"CREATE INDEX ... ON {table.sql} ({quote(question.surrogate)})"
            return Refused(notes.NO_PRIMARY_KEY, f"no index begins with its surrogate-key: {repair}")
        try:
            for column in columns:
                key_select(column)
        except UnsupportedType as error:
            return Refused(notes.NO_PRIMARY_KEY, error.message)
        collations = {
            str(name): str(collation)
            for name, collation in query(
                self._connection,
                "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS"
                " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLLATION_NAME IS NOT NULL",
                (table.database, table.table),
            )
        }
        names = tuple(column.name for column in columns)
        self._columns[(table, names)] = columns
        return Described(names, key_fingerprint(columns, collations), index or "")

    def _index(self, table: TableId, columns: Sequence[str]) -> str | None:
        """An index that begins with these columns in this order (the primary key's and unique ones first), or None."""
        rows = query(
            self._connection,
            "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = %s"
            " AND TABLE_NAME = %s AND IS_VISIBLE = 'YES' AND INDEX_TYPE = 'BTREE'"
            " ORDER BY INDEX_NAME <> 'PRIMARY', NON_UNIQUE, INDEX_NAME, SEQ_IN_INDEX",
            (table.database, table.table),
        )
        indexes: dict[str, list[str | None]] = {}
        for index, column, prefix in rows:
            # A prefix of a column does not order by the whole column.
            indexes.setdefault(str(index), []).append(None if prefix is not None else column)
        return next((index for index, found in indexes.items() if found[: len(columns)] == list(columns)), None)

    def _ordering(self, table: TableId, names: tuple[str, ...]) -> Sequence[Column]:
        columns = self._columns.get((table, names))
        if columns is None:
            shape = shape_of(self._connection, table)
            if shape is None:
                raise KeyError(f"table {table} does not exist")
            by_name = {column.name: column for column in shape.columns}
            columns = self._columns[(table, names)] = tuple(by_name[name] for name in names)
        return columns

    def _key(self, sql: str) -> Key | None:
        rows = query(self._connection, _bounded(sql))
        return tuple(None if value is None else str(value) for value in rows[0]) if rows else None


def _bounded(sql: str) -> str:
    hints = f"MAX_EXECUTION_TIME({_QUESTION_MS}) SET_VAR(lock_wait_timeout={_LOCK_SECONDS})"
    return sql.replace("SELECT ", f"SELECT /*+ {hints} */ ", 1)
