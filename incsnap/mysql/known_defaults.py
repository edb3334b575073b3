"""A cache of the DEFAULTs, defined types and comments of columns, which schemas show.

The server is asked once for each table, and again when a statement has changed the table. If the stream lags, the
server answers with its present values, not with those at the time of the change. Debezium follows each statement, so it
has the values of the time of the change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pymysql.connections import Connection

from incsnap.events import SchemaChange
from incsnap.mysql.column_defaults import defaults_of
from incsnap.tables import Defaults, TableDefaults, TableId

#: Tables in the cache, about 0.5 MB as JSON. Beyond this number only the tables of the present call are kept.
_MOST = 1_000


class KnownDefaults:
    """The cache of one planner process. With `definitions` it includes types and comments of columns."""

    def __init__(self, *, definitions: bool = False) -> None:
        self._definitions = definitions
        self._known: dict[TableId, Defaults] = {}

    def learned(
        self, connection: Connection[Any], tables: Iterable[TableId], changes: Iterable[SchemaChange]
    ) -> TableDefaults:
        """Return the known DEFAULTs, sorted by table, after asking the server for those of `tables` that are missing.

        `changes` are the statements since the last call. The tables that they changed are forgotten first, so they are
        asked for again when `tables` names them. Tables without any DEFAULT are left out.
        """
        asked_for = set(tables)
        for change in changes:
            self._known = {table: defaults for table, defaults in self._known.items() if not change.touches(table)}
        if len(self._known) + len(asked_for) > _MOST:
            self._known = {table: defaults for table, defaults in self._known.items() if table in asked_for}
        self._known |= defaults_of(connection, sorted(asked_for - self._known.keys()), definitions=self._definitions)
        return tuple((table, defaults) for table, defaults in sorted(self._known.items()) if defaults)
