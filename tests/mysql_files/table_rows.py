"""The rows of tables between statements that define tables, and their comparison with a job's records.

A span begins after one such statement and ends before the next one. The rows at its begin and the changes in it give
the rows at its end. Each update and deletion has the whole row before it, so a table needs no key for that.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysql.connections import Connection

from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.json_rows import json_objects
from incsnap.envelope.table_view import view_of
from incsnap.errors import IncsnapError
from incsnap.events import BinlogPosition
from incsnap.mysql.catalog import shape_of
from incsnap.mysql.chunk_reader import read_chunk
from incsnap.mysql.session import query
from incsnap.tables import TableId
from incsnap.types.modes import Modes
from tests.support.planned_job import Sent

#: Statements that may change a table's definition. A routine may contain any of them.
_DEFINES = re.compile(r"\W*(alter|create|drop|rename|truncate|call|execute|optimize|import|load)\b", re.IGNORECASE)
#: Databases of the server itself.
SYSTEM = ("mysql", "sys", "performance_schema", "information_schema")
#: A table with more rows is not compared.
_MOST_ROWS = 2_000

Rows = dict[TableId, "Counter[str]"]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the binlog in which no statement defines a table, with the rows at its begin and at its end."""

    begin: BinlogPosition
    end: BinlogPosition
    before: Rows  #: rows of each table at the begin
    after: Rows  #: rows of each table at the end
    statement: str  #: the statement after the span


@dataclass
class Observer:
    """A reader of tables around each statement that defines tables. `reader` is its own session, in UTC."""

    reader: Connection[Any]
    spans: list[Span] = field(default_factory=list)
    _begin: BinlogPosition | None = None
    _rows: Rows = field(default_factory=dict)

    def around(self, sql: str, session: Connection[Any], run: Callable[[], object]) -> None:
        """Run a statement. If it may define tables, end a span before it and begin one after it."""
        if not _DEFINES.match(sql):
            run()
            return
        session.commit()  # as MySQL itself does before such a statement; afterwards the rows are visible
        self.end_span(sql)
        try:
            run()
        finally:
            with suppress(pymysql.MySQLError):
                if (place := self._place()) != self._begin:
                    self._begin, self._rows = place, self._all_rows()

    def end_span(self, statement: str = "") -> None:
        """End the current span, and keep it if something was written in it."""
        begin, end = self._begin, self._place()
        if begin is not None and begin < end:
            before, self._begin, self._rows = self._rows, end, self._all_rows()
            self.spans.append(Span(begin, end, before, self._rows, statement))

    def _place(self) -> BinlogPosition:
        ((file, position, *_),) = query(self.reader, "SHOW BINARY LOG STATUS")
        return BinlogPosition(str(file), int(position))

    def _all_rows(self) -> Rows:
        names = query(
            self.reader,
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
            f" AND table_schema NOT IN {SYSTEM} LIMIT 30",
        )
        rows: Rows = {}
        for database, name in names:
            with suppress(IncsnapError, pymysql.MySQLError):
                if (read := self._read(TableId(str(database), str(name)))) is not None:
                    rows[TableId(str(database), str(name))] = read
        return rows

    def _read(self, table: TableId) -> Counter[str] | None:
        if not query(self.reader, f"SELECT 1 FROM {table.sql} LIMIT 1"):
            return Counter()
        shape = shape_of(self.reader, table)
        if shape is None:
            return None
        tail = f"FROM {table.sql} LIMIT {_MOST_ROWS}"
        columns = read_chunk(self.reader, shape, tail, max_bytes=1 << 26, timeout_seconds=5)
        rows = json_objects(view_of(shape, ColumnRules()).fields, columns, Modes()).to_pylist()
        return None if len(rows) >= _MOST_ROWS else Counter(map(_text, rows))


def _text(row: Any) -> str:
    return json.dumps(json.loads(row) if isinstance(row, str | bytes) else row)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a row, as a record tells it."""

    table: TableId
    at: BinlogPosition
    op: str
    before: str  #: the row as JSON, "" if there is none
    after: str

    @property
    def content(self) -> tuple[str, str, str]:
        return self.op, self.before, self.after


def changes_of(sent: Iterable[Sent]) -> list[Change]:
    """Return the changes of rows that were sent, without tombstones and rows of snapshots."""
    return [
        Change(
            TableId(each.value["source"]["db"], each.value["source"]["table"]),
            BinlogPosition(each.value["source"]["file"], each.value["source"]["pos"]),
            each.value["op"],
            "" if each.value["before"] is None else _text(each.value["before"]),
            "" if each.value["after"] is None else _text(each.value["after"]),
        )
        for each in sent
        if isinstance(each.value, dict) and each.value.get("op") in ("c", "u", "d")
    ]


def compare(spans: Iterable[Span], changes: Iterable[Change]) -> Iterator[str]:
    """Yield the differences between the tables' rows and the changes that were sent, or "" for each equal span."""
    by_table: dict[TableId, list[Change]] = defaultdict(list)
    for change in changes:
        by_table[change.table].append(change)
    for span in spans:
        for table in span.before.keys() & span.after.keys():
            within = [each for each in by_table[table] if span.begin <= each.at < span.end]
            rows = _applied(span.before[table], within)
            if +rows == span.after[table] and not -rows:
                yield ""
                continue
            missing, wrong = span.after[table] - rows, rows - span.after[table]
            yield (
                f"{table} up to {span.end.file}:{span.end.pos} ({span.statement[:200]!r}): not sent"
                f" {list(missing.elements())[:2]}, sent and not there {list(wrong.elements())[:2]}"
            )


def _applied(rows: Counter[str], changes: Iterable[Change]) -> Counter[str]:
    """Return the rows behind the changes.

    MySQL 9.7 logs a row twice if a cascade comes back to it, over a circle of foreign keys or a trigger. The second
    time is passed over.
    """
    rows, applied = Counter(rows), set[tuple[str, str, str]]()
    for change in changes:
        if change.before and not rows[change.before] and change.content in applied:
            continue
        applied.add(change.content)
        rows.update([change.after] if change.after else ())
        rows.subtract([change.before] if change.before else ())
    return rows
