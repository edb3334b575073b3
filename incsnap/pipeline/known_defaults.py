"""The DEFAULTs of columns that schemas show: asked of the server once a table, and again when a statement changed it.

Right but for a backlog: then the DEFAULT is today's, where Debezium, which follows every statement, has that of then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pymysql.connections import Connection

from incsnap.events import SchemaChange
from incsnap.mysql.column_defaults import defaults_of
from incsnap.tables import Defaults, TableId

#: Pairs, because it travels in the parts of a batch.
TableDefaults = tuple[tuple[TableId, Defaults], ...]


class KnownDefaults:
    def __init__(self) -> None:
        self._known: dict[TableId, Defaults] = {}

    def of(
        self, connection: Connection[Any], tables: Iterable[TableId], changes: Iterable[SchemaChange]
    ) -> TableDefaults:
        """Of ``tables``, those without any left out; ``changes``: statements since the last call."""
        for change in changes:
            self._known = {table: found for table, found in self._known.items() if not change.touches(table)}
        wanted = sorted(tables)
        self._known |= defaults_of(connection, [table for table in wanted if table not in self._known])
        return tuple((table, self._known[table]) for table in wanted if self._known[table])
