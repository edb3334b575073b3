"""What tables are right behind a batch's end: asked of the server, and told only where it is certain.

It is where the server has made visible what was delivered, and the tail, which reads up to the binlog's end as it was
after the question, holds no later statement about the table. Otherwise nothing is told: never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
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

#: The batch waits for the answer; statements that define tables are rare.
WAIT_SECONDS = 1.0
_ALTERS_DATABASE = re.compile(r"\s*ALTER\s+(DATABASE|SCHEMA)\b", re.IGNORECASE)


T = TypeVar("T")
#: ``Tail.changes_behind`` or ``Tail.all_changes_behind``.
ChangesBehind = Callable[[StreamPosition, tuple[str, int], float], tuple[SchemaChange, ...] | None]


class NotCertain(Exception):
    """Why it is not certain yet what the server's answer is true of."""


def answer_behind(
    question: Callable[[], T],
    end: StreamPosition,
    connection: Connection[Any],
    changes_behind: ChangesBehind,
    patience: float,
    *,
    same_server: bool,
) -> tuple[T, tuple[SchemaChange, ...]]:
    """The answer to ``question`` about definitions, which is asked by ``connection``, and the statements behind ``end``
    that the answer may be of already: of a table that none of them defines anew it tells what the table is at ``end``.
    ``same_server``: queries go to the server that the binlog comes from. ``patience``: seconds, of each of two waits.

    Raises ``NotCertain``, and what ``question`` raises.
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
    """Definitions at the end of a batch."""

    connection: Connection[Any]
    tail: Tail
    end: StreamPosition  #: the batch's end
    same_server: bool  #: whether queries go to the server that the binlog comes from
    comments: bool = False  #: whether to ask for comments of tables and columns too

    def certain(
        self, tables: Collection[TableId], patience: float = WAIT_SECONDS
    ) -> tuple[dict[TableId, Definition], str]:
        """Return the definitions of those of ``tables`` that exist and whose definition is certain; and why none is
        certain, "" where the server has answered. ``patience``: seconds, as in ``answer_behind``."""
        if not tables:
            return {}, ""
        try:
            definitions, later = answer_behind(
                lambda: definitions_of(self.connection, dict.fromkeys(tables), comments=self.comments),
                self.end,
                self.connection,
                self.tail.changes_behind,
                patience,
                same_server=self.same_server,
            )
        except NotCertain as problem:
            return {}, str(problem)
        return {table: each for table, each in definitions.items() if not redefined(table, later)}, ""


def redefined(table: TableId, changes: Sequence[SchemaChange]) -> bool:
    """Does one of these statements define the table anew?"""
    return any(defines(change) and change.touches(table) for change in changes)


def defines(change: SchemaChange) -> bool:
    """TRUNCATE and ALTER DATABASE leave the definitions of tables as they are."""
    return not change.truncates and not _ALTERS_DATABASE.match(change.sql)
