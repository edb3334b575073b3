"""Records of statements that define or empty tables: the schema change topic, and ``op: "t"`` on the table's own.

A table's definition is asked of the server, at planning. It is told only where it is certain to be the one right behind
the statement: the server has made visible what was delivered; the tail has read up to the binlog's end as it was after
the question, and holds no later statement about the table. Otherwise ``tableChanges`` is empty: never a guess.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from incsnap import __version__
from incsnap.binlog.places import Advance
from incsnap.binlog.table_statements import TableStatement, table_statements
from incsnap.binlog.tail import Tail
from incsnap.binlog.wanted import Wanted
from incsnap.config.settings import Settings
from incsnap.envelope import control_records
from incsnap.envelope.source_block import SourceConstants
from incsnap.errors import ChunkFailed
from incsnap.events import Origin, SchemaChange
from incsnap.mysql import fences
from incsnap.mysql.catalog import shape_of, tables
from incsnap.mysql.column_defaults import shape_with_defaults
from incsnap.mysql.connection import query
from incsnap.mysql.table_definitions import Definition, definitions_of
from incsnap.pipeline.control_file import ControlRecord
from incsnap.pipeline.control_topics import schema_topic
from incsnap.pipeline.formats import format_of, struct_formats
from incsnap.pipeline.naming import topic_of
from incsnap.tables import TableId, TableShape

log = logging.getLogger(__name__)

#: The batch waits for the answer; statements that define tables are rare.
_WAIT_SECONDS = 1.0
_ALTERS_DATABASE = re.compile(r"\s*ALTER\s+(DATABASE|SCHEMA)\b", re.IGNORECASE)


def wanted(settings: Settings) -> Wanted:
    """Of the stream."""
    return Wanted(
        settings.include_query,
        concerns=lambda change: _concerns(settings, change),
        ends_batch=lambda change: bool(truncated_tables(settings, change)),
    )


def _concerns(settings: Settings, change: SchemaChange) -> bool:
    """May the statement be about a captured table, or a database that has any? Others are no reason for a batch."""
    included = settings.tables
    if change.tables is None:
        return not change.database or included.may_include_database(change.database)
    if not change.tables:
        statements = table_statements(change.sql, "", change.sql_mode)
        return any(included.may_include_database(each.database) for each in statements)
    return any(included.included(table) for table in change.tables)


def truncated_tables(settings: Settings, change: SchemaChange) -> list[TableId]:
    """The included tables of which an ``op: "t"`` record tells that they were emptied, as the statement names them."""
    if not change.truncates or "t" in settings.skipped_operations or change.tables is None:
        return []
    return [table for table in sorted(change.tables) if settings.tables.included(table)]


@dataclass(slots=True)
class DefinitionRecords:
    """Of one batch. ``same_server``: queries go to the server that the binlog comes from."""

    settings: Settings
    connection: Connection[Any]
    tail: Tail
    advance: Advance
    same_server: bool
    now_us: int

    def all(self, *, first: bool) -> list[ControlRecord]:
        """In the order of the binlog; ``first``: of a job's first batch, which begins with all tables as they are."""
        stored_lower = self._names_are_lower() if self.advance.changes else False
        found: list[ControlRecord] = []
        if self.settings.include_schema_changes:
            found += self._schema_changes(stored_lower, first=first)
        for change in self.advance.changes:
            for table in truncated_tables(self.settings, change):
                record = self._truncation(_stored(table, stored_lower), change)
                found += [] if record is None else [record]
        return found

    # -- definitions

    def _schema_changes(self, stored_lower: bool, *, first: bool) -> list[ControlRecord]:
        said = [
            (number, change, self._reported(change, stored_lower)) for number, change in enumerate(self.advance.changes)
        ]
        begun = tables(self.connection, self.settings.tables) if first else []
        changed = [
            each.table
            for number, _, statements in said
            for each in statements
            if each.table is not None and each.type != "DROP" and not self._touched(each.table, number + 1)
        ]
        certain = self._certain([*changed, *(table for table in begun if not self._touched(table, 0))])
        writer = _Writer(self.settings, self.now_us)
        known = [table for table in begun if table in certain]
        for table in begun:
            if table not in certain:
                log.warning("%s was changed while the job began: its definition at that time is not told", table)
        for table in known:
            writer.existing(table, certain[table], self._here(last=table == known[-1]))
        for number, change, statements in said:
            names = ",".join(each.table.table for each in statements if each.table is not None)
            for each in statements:
                definition = None
                if each.table is not None and not self._touched(each.table, number + 1):
                    definition = certain.get(each.table)
                writer.changed(each, names or None, definition, _source(change.origin))
        return writer.records

    def _reported(self, change: SchemaChange, stored_lower: bool) -> list[TableStatement]:
        if change.origin is None:
            return []
        included = self.settings.tables
        found = []
        for each in table_statements(change.sql, change.session_database, change.sql_mode):
            table = None if each.table is None else _stored(each.table, stored_lower)
            if included.included(table) if table is not None else included.may_include_database(each.database):
                found.append(TableStatement(each.type, table.database if table else each.database, table, each.ddl))
        return found

    def _touched(self, table: TableId, since: int) -> bool:
        return _redefined(table, self.advance.changes[since:])

    def _certain(self, wanted: Sequence[TableId]) -> dict[TableId, Definition]:
        if not wanted or not self.same_server:
            return {}
        end = self.advance.end
        try:
            fences.low_fence(self.connection, end.delivered, _WAIT_SECONDS)
        except ChunkFailed:
            return {}
        found = definitions_of(self.connection, dict.fromkeys(wanted))
        later = self.tail.changes_behind(end, fences.high_watermark(self.connection), _WAIT_SECONDS)
        if later is None:
            return {}
        return {table: it for table, it in found.items() if not _redefined(table, later)}

    def _here(self, *, last: bool) -> SourceConstants:
        """The source of what was there when the job began, as of Debezium's snapshot of schemas."""
        end = self.advance.end
        return SourceConstants(end.file, end.pos, self.now_us, snapshot="last" if last else "true")

    # -- truncations

    def _truncation(self, table: TableId, change: SchemaChange) -> ControlRecord | None:
        shape = shape_of(self.connection, table)
        if self.settings.formats.show_schemas:
            if shape is None:
                log.warning("%s is gone: its TRUNCATE cannot be written with a schema and is left out", table)
                return None
            shape = shape_with_defaults(self.connection, shape)
        format_ = format_of(self.settings, shape or TableShape(table, ()))
        value = format_.value.truncation(_source(change.origin), self.now_us)
        return ControlRecord(topic_of(self.settings, table), None, value)

    def _names_are_lower(self) -> bool:
        """lower_case_table_names=1: whatever a statement calls a table, its name is stored in lower case."""
        return str(query(self.connection, "SELECT @@lower_case_table_names")[0][0]) == "1"


class _Writer:
    def __init__(self, settings: Settings, now_us: int) -> None:
        self._topic, self._name, self._now_ms = schema_topic(settings), settings.topic_prefix, now_us // 1000
        self._keys, self._values = struct_formats(settings)
        self.records: list[ControlRecord] = []

    def existing(self, table: TableId, definition: Definition, source: SourceConstants) -> None:
        change = control_records.table_change("CREATE", table, definition.shown)
        self._add(source, table.database, table.table, definition.ddl, [change])

    def changed(
        self, said: TableStatement, names: str | None, definition: Definition | None, source: SourceConstants
    ) -> None:
        changes: list[dict[str, Any]] = []
        if said.table is not None:
            if said.type == "DROP":
                changes.append(control_records.table_change("DROP", said.table, None))
            elif definition is not None:
                changes.append(control_records.table_change(said.type, said.table, definition.shown))
            else:
                log.warning(
                    "%s:%d: what %s is right behind a statement cannot be told any more; tableChanges is empty",
                    source.file,
                    source.pos,
                    said.table,
                )
        self._add(source, said.database, names, said.ddl, changes)

    def _add(
        self, source: SourceConstants, database: str, table: str | None, ddl: str, changes: list[dict[str, Any]]
    ) -> None:
        value = control_records.schema_change(
            __version__, self._name, source, database, table, ddl, changes, self._now_ms
        )
        key = {"databaseName": database}
        self.records.append(
            ControlRecord(
                self._topic,
                self._keys.struct(f"{self._topic}-key", control_records.SCHEMA_CHANGE_KEY, key),
                self._values.struct(f"{self._topic}-value", control_records.SCHEMA_CHANGE_VALUE, value),
            )
        )


def _redefined(table: TableId, changes: Sequence[SchemaChange]) -> bool:
    """TRUNCATE and ALTER DATABASE leave definitions as they are."""
    return any(
        change.touches(table) and not change.truncates and not _ALTERS_DATABASE.match(change.sql) for change in changes
    )


def _stored(table: TableId, lower: bool) -> TableId:
    return TableId(table.database.lower(), table.table.lower()) if lower else table


def _source(origin: Origin | None) -> SourceConstants:
    """Of a statement. Debezium gives its time in whole milliseconds."""
    assert origin is not None
    ts_us = origin.ts_us // 1000 * 1000
    return SourceConstants(
        origin.file, origin.pos, ts_us, origin.server_id, origin.gtid, origin.thread, snapshot="false"
    )
