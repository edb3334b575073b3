"""The definitions of tables right after a batch's end: asked of the server, and used only if they are certain.

A definition is certain under two conditions. The server has executed all that was delivered, before it is asked. And
the tail holds no later statement about the table: it has read up to the binlog's end, which was taken after the answer.
Otherwise there is no definition. It is never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pymysql.connections import Connection

from incsnap.binlog.tail import Tail
from incsnap.errors import ChunkFailed
from incsnap.events import SchemaChange, StreamPosition
from incsnap.mysql import watermarks
from incsnap.mysql.table_definitions import Definition, definitions_of
from incsnap.snapshot.window import low_watermark_of
from incsnap.tables import TableId

#: Seconds that a batch waits for the answer. Statements that define tables are rare.
WAIT_SECONDS = 1.0
_ALTERS_DATABASE = re.compile(r"\s*ALTER\s+(DATABASE|SCHEMA)\b", re.IGNORECASE)


T = TypeVar("T")
#: The type of `Tail.changes_behind` and `Tail.all_changes_behind`.
ChangesBehind = Callable[[StreamPosition, tuple[str, int], float], tuple[SchemaChange, ...] | None]


class NotCertain(Exception):
    """An error: it is not certain yet for which place of the stream the server's answer is true."""


def answer_behind(
    question: Callable[[], T],
    end: StreamPosition,
    connection: Connection[Any],
    changes_behind: ChangesBehind,
    patience: float,
    *,
    same_server: bool,
) -> tuple[T, tuple[SchemaChange, ...]]:
    """Return the server's answer to `question`, and the statements after the place `end` that it may already show.

    The server answers as it is now, behind `end`. For a table that none of these statements redefines, the answer also
    tells what the table is at `end`. `question` asks by `connection` about definitions. `same_server`: queries go to
    the server that the binlog comes from. `patience`: seconds, for each of two waits.

    Raise NotCertain if the server or the tail is too late, and what `question` raises.
    """
    if not same_server:
        raise NotCertain("queries go to another server than the binlog comes from")
    try:
        watermarks.wait_until_executed(connection, low_watermark_of(end), patience)
    except ChunkFailed as failed:
        raise NotCertain(failed.message) from failed
    answer = question()
    later = changes_behind(end, watermarks.high_watermark(connection), patience)
    if later is None:
        raise NotCertain(f"the binlog was not read to its end in {patience:g} s")
    return answer, later


@dataclass(frozen=True, slots=True)
class DefinitionsAt:
    """The server's definitions at the end of a batch."""

    connection: Connection[Any]  #: connection that is asked
    tail: Tail  #: tail that holds the statements after the batch
    end: StreamPosition  #: the batch's end
    same_server: bool  #: whether queries go to the server that the binlog comes from
    comments: bool = False  #: whether to ask for comments of tables and columns too

    def certain(
        self, tables: Mapping[TableId, str], patience: float = WAIT_SECONDS
    ) -> tuple[dict[TableId, Definition], str]:
        """Return the certain definitions of those of `tables` that exist, and why none is certain.

        `tables` has for each table the time zone in which its definition is shown; "" for the server's own.

        The reason is "" if the server has answered. `patience`: seconds, as in `answer_behind`.
        """
        if not tables:
            return {}, ""
        try:
            definitions, later = self.answer(
                lambda: definitions_of(self.connection, tables, comments=self.comments), patience
            )
        except NotCertain as problem:
            return {}, str(problem)
        return {table: each for table, each in definitions.items() if not redefined(table, later)}, ""

    def answer(self, question: Callable[[], T], patience: float = WAIT_SECONDS) -> tuple[T, tuple[SchemaChange, ...]]:
        """Return what `answer_behind` returns for the batch's end. Raise NotCertain as `answer_behind` does."""
        return answer_behind(
            question,
            self.end,
            self.connection,
            self.tail.changes_behind,
            patience,
            same_server=self.same_server,
        )

    def is_missing(self, table: TableId) -> bool:
        """Whether a table that the server has just not found is missing at the batch's end, too.

        False if a statement behind the batch may have moved the table away or dropped it, or if it is not certain that
        there is none. If queries go to another server, its present state is all that can be known.
        """
        if not self.same_server:
            return True
        try:
            _, later = self.answer(lambda: None)
        except NotCertain:
            return False
        return not redefined(table, later)


def redefined(table: TableId, changes: Sequence[SchemaChange]) -> bool:
    """Whether one of these statements may change anything of the table's definition: columns, keys, indexes or
    comments."""
    return any(defines(change) and change.touches(table) for change in changes)


def defines(change: SchemaChange) -> bool:
    """Whether the statement may change the definition of any table. TRUNCATE and ALTER DATABASE do not."""
    return not change.truncates and not _ALTERS_DATABASE.match(change.sql)
