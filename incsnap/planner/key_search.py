"""The search for keys of a table in the order of its chunks: the maximum key, and the keys where chunks end.

Found keys are cached. A planning asks in this order:

    keys = KeySearch(connection, within_ms, is_over)
    keys.look_up(tables)             one statement for the catalogue of all tables
    keys.find_together(maxima, 500)  a few statements for the first keys of all tables
    keys.key(question)               the cached key, or one statement
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.mysql.catalog import collations_of, indexes_of, shapes_of
from incsnap.mysql.session import QueryRefusedError, query
from incsnap.planner.table_ordering import CatalogEntry
from incsnap.snapshot.chunk_query import maximum_key, next_boundary
from incsnap.snapshot.keys import Key
from incsnap.snapshot.questions import BesideQuestion, Describe, MaximumKey, NextBoundary
from incsnap.tables import Column, TableId

#: Milliseconds for one boundary if no batch waits. An index walk of 100,000 keys takes 26 ms on a warm server.
QUESTION_MS = 5_000
#: Milliseconds for one boundary beside the stream if no index has the order, and the server sorts the table: 1.0 s for
#: 2 million rows on an idle server.
_SORT_MS = 60_000
#: Seconds to wait for a locked table. The session's own bound is for chunks, for which no batch waits.
_LOCK_SECONDS = 1
#: Keys that one statement selects. It takes 8 ms for the keys of 64 tables; 64 statements take 80 ms.
_TOGETHER = 64


class KeySearch:
    """The keys of one planning, on the planner's connection. The next planning asks again.

    `within_ms` returns the milliseconds that a statement may take, given those that it may take if no batch waits.
    `is_over`: whether the batch has waited long enough. `sorts`: whether the server may sort a table for a minute.
    """

    def __init__(
        self,
        connection: Connection[Any],
        within_ms: Callable[[int], int],
        is_over: Callable[[], bool],
        *,
        sorts: bool,
    ) -> None:
        self._connection = connection
        self._within_ms = within_ms
        self._is_over = is_over
        self._sorts = sorts
        self._columns: dict[tuple[TableId, tuple[str, ...]], tuple[Column, ...]] = {}
        self._catalog: dict[TableId, CatalogEntry] = {}
        self._keys: dict[str, Key | None] = {}

    def is_known(self, question: BesideQuestion) -> bool:
        """Whether the answer is cached."""
        match question:
            case Describe(condition=""):
                return question.table in self._catalog
            case MaximumKey() | NextBoundary() if (question.table, question.columns) in self._columns:
                return self._sql(question) in self._keys
        return False

    def look_up(self, tables: Sequence[TableId]) -> None:
        """Cache the catalogue's entries of those of `tables` that exist."""
        collations, indexes = collations_of(self._connection, tables), indexes_of(self._connection, tables)
        self._catalog |= {
            table: CatalogEntry(shape, collations.get(table, {}), indexes.get(table, ()))
            for table, shape in shapes_of(self._connection, tables).items()
        }

    def cached_entry(self, table: TableId) -> CatalogEntry | None:
        """Return the catalogue's entry if `look_up` has found it, else None."""
        return self._catalog.get(table)

    def entry(self, table: TableId) -> CatalogEntry | None:
        """Return the catalogue's entry of the table; None if the table does not exist."""
        if table not in self._catalog:
            self.look_up([table])
        return self._catalog.get(table)

    def remember_order(self, table: TableId, columns: tuple[Column, ...]) -> tuple[str, ...]:
        """Cache the columns that order the table, and return their names."""
        names = tuple(column.name for column in columns)
        self._columns[(table, names)] = columns
        return names

    def columns(self, table: TableId, names: tuple[str, ...]) -> Sequence[Column]:
        """Return the columns `names` of the table. Raise KeyError if the table or a column does not exist."""
        columns = self._columns.get((table, names))
        if columns is None:
            entry = self.entry(table)
            if entry is None:
                raise KeyError(f"table {table} does not exist")
            by_name = {column.name: column for column in entry.shape.columns}
            columns = self._columns[(table, names)] = tuple(by_name[name] for name in names)
        return columns

    def key(self, question: MaximumKey | NextBoundary) -> Key | None:
        """Return the key that the question asks for, from the cache or from the server; None if the table has no such
        key.

        Raise QueryRefusedError if the server refuses the query, and KeyError if the table or a column of the key does
        not exist.
        """
        sql = self._sql(question)
        if sql in self._keys:
            return self._keys[sql]
        most_ms = _SORT_MS if self._sorts and not question.index else QUESTION_MS
        rows = query(self._connection, bounded(sql, self._within_ms(most_ms)))
        return _canonical(rows[0]) if rows else None

    def find_together(self, maxima: Sequence[MaximumKey], rows: int) -> None:
        """Cache the answers of many tables with few statements: the maximum keys, and where the tables' first chunks
        end.

        `maxima` are the questions for the maximum keys. The first chunk of a table has `rows` rows. The function leaves
        out a table if the server refuses its query, and all remaining tables once the batch has waited long enough.
        """
        #: Questions by the types of their keys. One statement can select only keys of the same types and collations.
        alike: dict[tuple[object, ...], list[tuple[MaximumKey, str]]] = {}
        for question in maxima:
            collations = self._catalog[question.table].collations
            columns = self.columns(question.table, question.columns)
            kind = tuple((column.type, column.charset, collations.get(column.name)) for column in columns)
            alike.setdefault(kind, []).append((question, self._sql(question)))
        for asked in alike.values():
            self._learn([sql for _, sql in asked])
            first = [
                NextBoundary(each.table, each.columns, each.index, None, maximum, rows, descending=each.descending)
                for each, sql in asked
                if (maximum := self._keys.get(sql)) is not None
            ]
            self._learn([self._sql(each) for each in first])

    def _learn(self, statements: Sequence[str]) -> None:
        """Cache the keys that these statements select. Their keys have equally many columns."""
        for begin in range(0, len(statements), _TOGETHER):
            if self._is_over():
                return
            part = statements[begin : begin + _TOGETHER]
            numbered = (sql.replace("SELECT ", f"SELECT {number}, ", 1) for number, sql in enumerate(part))
            try:
                together = " UNION ALL ".join(f"({sql})" for sql in numbered)
                rows = query(self._connection, bounded(together, self._within_ms(QUESTION_MS)))
            except QueryRefusedError:
                continue  # one of the tables is gone or locked; single questions find out which
            self._keys |= dict.fromkeys(part)
            self._keys |= {part[int(row[0])]: _canonical(row[1:]) for row in rows}

    def _sql(self, question: MaximumKey | NextBoundary) -> str:
        """Return the statement that selects the key. Raise KeyError as `columns` does."""
        table, columns = question.table, self.columns(question.table, question.columns)
        if isinstance(question, MaximumKey):
            return maximum_key(
                table,
                columns,
                index=question.index,
                descending=question.descending,
                first=question.first,
                last=question.last,
            )
        return next_boundary(
            table,
            columns,
            question.after,
            question.maximum,
            question.rows,
            index=question.index,
            descending=question.descending,
            first=question.first,
            last=question.last,
        )


def _canonical(row: Sequence[Any]) -> Key:
    return tuple(None if value is None else str(value) for value in row)


def bounded(sql: str, within_ms: int) -> str:
    """Return the SELECT `sql` with a time limit, and with a short wait for locks."""
    hints = f"MAX_EXECUTION_TIME({within_ms}) SET_VAR(lock_wait_timeout={_LOCK_SECONDS})"
    return sql.replace("SELECT ", f"SELECT /*+ {hints} */ ", 1)
