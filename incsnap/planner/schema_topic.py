"""The records of the schema change topic, one for each table or database that a statement defines."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from incsnap.checkpoint.control_records import ControlRecord
from incsnap.config.settings import Settings
from incsnap.config.topics import ControlTopic
from incsnap.ddl.table_statements import TableStatement
from incsnap.envelope import control_records, control_schemas
from incsnap.envelope.sources import SourceConstants
from incsnap.mysql.table_definitions import Definition
from incsnap.tables import TableId
from incsnap.tasks.formats import struct_formats
from incsnap.version import __version__

log = logging.getLogger(__name__)


class SchemaTopic:
    """The schema change topic of a job.

    `now_us` is the time of the records, in microseconds since 1970.
    """

    def __init__(self, settings: Settings, topic: ControlTopic, now_us: int) -> None:
        self._topic, self._name, self._now_ms = topic, settings.topic_prefix, now_us // 1000
        self._keys, self._values = struct_formats(settings)

    def existing(self, table: TableId, definition: Definition, source: SourceConstants) -> ControlRecord:
        """Return the record of a table that existed when the job began."""
        change = control_records.table_change("CREATE", table, definition.shown)
        return self._record(source, table.database, table.table, definition.ddl, [change])

    def changed(
        self, statement: TableStatement, names: str | None, definition: Definition | None, source: SourceConstants
    ) -> ControlRecord:
        """Return the record of a statement.

        `names` are the captured tables of the whole statement. `definition` is that of the statement's table after the
        statement; None if there is no table or the definition is not certain.
        """
        changes: list[dict[str, Any]] = []
        if statement.table is not None:
            if statement.type == "DROP":
                changes.append(control_records.table_change("DROP", statement.table, None))
            elif definition is not None:
                changes.append(control_records.table_change(statement.type, statement.table, definition.shown))
            else:
                log.warning(
                    "%s:%d: the definition of %s after a statement cannot be told any more; tableChanges is empty",
                    source.file,
                    source.pos,
                    statement.table,
                )
        return self._record(source, statement.database, names, statement.ddl, changes)

    def _record(
        self, source: SourceConstants, database: str, table: str | None, ddl: str, changes: Sequence[dict[str, Any]]
    ) -> ControlRecord:
        value = control_records.schema_change(
            __version__, self._name, source, database, table, ddl, changes, self._now_ms
        )
        topic = self._topic
        return ControlRecord(
            topic.name,
            self._keys.struct(f"{topic.name}-key", topic.key_schema, topic.key({"databaseName": database})),
            self._values.struct(f"{topic.name}-value", control_schemas.SCHEMA_CHANGE_VALUE, value),
        )
