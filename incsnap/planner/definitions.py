"""What tables are right behind a batch's end: asked of the server, and told only where it is certain.

It is where the server has made visible what was delivered, and the tail, which reads up to the binlog's end as it was
after the question, holds no later statement about the table. Otherwise nothing is told: never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.tail import Tail
from incsnap.errors import ChunkFailed
from incsnap.events import SchemaChange, StreamPosition
from incsnap.mysql import watermarks
from incsnap.mysql.session import query
from incsnap.mysql.table_definitions import Definition, definitions_of
from incsnap.tables import TableId

#: The batch waits for the answer; statements that define tables are rare.
WAIT_SECONDS = 1.0
_ALTERS_DATABASE = re.compile(r"\s*ALTER\s+(DATABASE|SCHEMA)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DefinitionsAt:
    """Definitions at ``end``, the end of a batch. ``same_server``: queries go to the server that the binlog comes
    from."""

    connection: Connection[Any]
    tail: Tail
    end: StreamPosition
    same_server: bool

    def certain(self, tables: Collection[TableId]) -> dict[TableId, Definition]:
        """The definitions of those of ``tables`` that exist, where they are certain."""
        if not tables or not self.same_server:
            return {}
        try:
            watermarks.wait_until_executed(self.connection, self.end.delivered, WAIT_SECONDS)
        except ChunkFailed:
            return {}
        found = definitions_of(self.connection, dict.fromkeys(tables))
        later = self.tail.changes_behind(self.end, watermarks.high_watermark(self.connection), WAIT_SECONDS)
        if later is None:
            return {}
        return {table: definition for table, definition in found.items() if not redefined(table, later)}

    def stores_lower_case(self) -> bool:
        """lower_case_table_names=1: whatever a statement calls a table, its name is stored in lower case."""
        return str(query(self.connection, "SELECT @@lower_case_table_names")[0][0]) == "1"


def redefined(table: TableId, changes: Sequence[SchemaChange]) -> bool:
    """Does one of these statements define the table anew?"""
    return any(defines(change) and change.touches(table) for change in changes)


def defines(change: SchemaChange) -> bool:
    """TRUNCATE and ALTER DATABASE leave the definitions of tables as they are."""
    return not change.truncates and not _ALTERS_DATABASE.match(change.sql)
