"""The DEFAULTs, defined types and comments of columns that schemas show: asked of the server once a table, and again
when a statement changed it.

Right but for a backlog: then they are today's, where Debezium, which follows every statement, has those of then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pymysql.connections import Connection

from incsnap.events import SchemaChange
from incsnap.mysql.column_defaults import defaults_of
from incsnap.tables import Defaults, TableDefaults, TableId

#: Tables of which they are remembered, some 0.5 MB as JSON. Past that all but those at hand are asked for again.
_MOST = 1_000


class KnownDefaults:
    """What the server was asked for in one life of the planner. ``definitions``: with the types and comments of
    columns."""

    def __init__(self, *, definitions: bool = False) -> None:
        self._definitions = definitions
        self._known: dict[TableId, Defaults] = {}

    def learned(
        self, connection: Connection[Any], tables: Iterable[TableId], changes: Iterable[SchemaChange]
    ) -> TableDefaults:
        """All that is known, ``tables`` among it, but for those without any; sorted by table. ``changes``: statements
        since the last call."""
        asked_for = set(tables)
        for change in changes:
            self._known = {table: defaults for table, defaults in self._known.items() if not change.touches(table)}
        if len(self._known) + len(asked_for) > _MOST:
            self._known = {table: defaults for table, defaults in self._known.items() if table in asked_for}
        self._known |= defaults_of(connection, sorted(asked_for - self._known.keys()), definitions=self._definitions)
        return tuple((table, defaults) for table, defaults in sorted(self._known.items()) if defaults)
