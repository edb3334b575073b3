"""The planner's port to MySQL's queries: definitions, DEFAULTs and loads that a batch depends on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.table_rows import Charsets
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.control_records import ControlRecord
from incsnap.config.settings import Settings
from incsnap.ddl.online_tables import OnlineTables
from incsnap.envelope.seam import Seam
from incsnap.events import SchemaChange
from incsnap.mysql.column_defaults import KnownDefaults
from incsnap.planner.definitions import WAIT_SECONDS, DefinitionsAt, answer_behind
from incsnap.planner.known_definitions import BatchKnowledge, KnownDefinitions
from incsnap.planner.load_watch import LoadWatch
from incsnap.planner.query_connection import QueryConnection
from incsnap.planner.schema_changes import statement_records
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.load import MeasuredLoad
from incsnap.snapshot.offset import Offset
from incsnap.snapshot.throttle import STREAM_LAG
from incsnap.tables import TableDefaults

T = TypeVar("T")


class ServerPort:
    """The queries of one planner. `definitions` knows the tables whose rows do not name their columns."""

    def __init__(self, settings: Settings, queries: QueryConnection, definitions: KnownDefinitions) -> None:
        self._settings = settings
        self._queries = queries
        self._definitions = definitions
        self._defaults = KnownDefaults(definitions=settings.columns.needs_definitions)
        self._loads = LoadWatch(settings.mysql, settings.snapshot)

    @property
    def charsets(self) -> Charsets:
        """The server's character sets and collations."""
        return self._queries.charsets

    def knowledge(
        self, start: Offset, advance: Advance, tail: Tail, connection: Connection[Any], *, has_backlog: bool
    ) -> BatchKnowledge | None:
        """Return the definitions at the batch's end (`KnownDefinitions.at`).

        Return None while all rows name their columns. Raise DefinitionUnknown or IncsnapError as described there.
        """
        return self._definitions.at(start, advance, tail, connection, has_backlog=has_backlog)

    def asking(
        self, advance: Advance, tail: Tail, connection: Connection[Any]
    ) -> Callable[[Callable[[], T]], tuple[T, tuple[SchemaChange, ...]]]:
        """Return the function that asks the server a question about definitions at the batch's end.

        The function returns the answer, and the statements behind the batch that it may already show. It raises
        NotCertain as `answer_behind` does.
        """
        same_server = self._queries.leads_to(advance.end)

        def ask(question: Callable[[], T]) -> tuple[T, tuple[SchemaChange, ...]]:
            behind = tail.changes_behind
            return answer_behind(question, advance.end, connection, behind, WAIT_SECONDS, same_server=same_server)

        return ask

    def statement_records(
        self,
        start: Offset,
        advance: Advance,
        tail: Tail,
        connection: Connection[Any],
        seam: Seam | None,
        online: OnlineTables,
    ) -> tuple[ControlRecord, ...]:
        """Return the batch's records of schema changes and truncations, without those of tables in `online`.

        A job's first batch adds the tables that exist, unless the job has taken over from another engine. `seam`: the
        records that the other engine has sent, which are left out.
        """
        same_server = self._queries.leads_to(advance.end)
        definitions = DefinitionsAt(connection, tail, advance.end, same_server, self._settings.columns.comments)
        first = start.batch == 0 and seam is None
        now_us = time.time_ns() // 1000
        return statement_records(self._settings, definitions, advance, now_us, first=first, online=online, seam=seam)

    def defaults(self, advance: Advance, connection: Connection[Any]) -> TableDefaults | None:
        """Return the DEFAULTs of columns for the schemas of the batch; None if the settings do not need them."""
        if not self._settings.asks_for_columns:
            return None
        return self._defaults.learned(connection, advance.tables, advance.changes)

    def loads(self, snapshot: SnapshotContext, advance: Advance, behind_seconds: float) -> tuple[MeasuredLoad, ...]:
        """Return the loads that have limits; () if no snapshot could be held back.

        `behind_seconds`: seconds since the commit of the batch's last transaction.
        """
        if not snapshot.active or snapshot.paused:
            return ()
        bounds = snapshot.throttle.bounds(self._settings.snapshot.throttle)
        loads = self._loads.newest(bounds)
        if STREAM_LAG in bounds:
            lag_ms = max(0, round(behind_seconds * 1000)) if advance.last_ts_us else 0
            loads += (MeasuredLoad(STREAM_LAG, lag_ms),)
        return loads

    def close(self) -> None:
        """Close the connections that measure loads."""
        self._loads.close()
