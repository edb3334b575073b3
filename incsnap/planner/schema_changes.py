"""Records of statements that define or empty tables: the schema change topic, and ``op: "t"`` on the table's own.

A statement is told always, a table's definition behind it where it is certain (``definitions``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.capture_options import CaptureOptions
from incsnap.binlog.table_rows import Charsets
from incsnap.checkpoint.control_records import ControlRecord
from incsnap.config.settings import Settings
from incsnap.config.topics import ControlTopic, schema_topic
from incsnap.ddl.table_statements import TableStatement, table_statements
from incsnap.envelope.source_block import SourceConstants
from incsnap.envelope.written import TRUNCATION
from incsnap.events import Origin, SchemaChange
from incsnap.mysql.catalog import shape_of, stores_lower_case, tables
from incsnap.mysql.column_defaults import shape_with_defaults
from incsnap.planner.definitions import WAIT_SECONDS, DefinitionsAt, redefined
from incsnap.planner.schema_topic import SchemaTopic
from incsnap.tables import TableId, TableShape
from incsnap.tasks.formats import format_of

log = logging.getLogger(__name__)

#: Seconds that a job's first batch waits for definitions: no later one tells what tables there were.
_FIRST_SECONDS = 30.0


def capture_options(settings: Settings, charsets: Charsets, *, follows: bool) -> CaptureOptions:
    """Return what the stream must bring besides rows. `charsets`: the server's collations. `follows`: also bring
    statements about tables that are not captured, of databases that may have captured ones."""
    return CaptureOptions(
        settings.include_query,
        concerns=lambda change: _concerns(settings, change, follows=follows),
        ends_batch=lambda change: bool(truncated_tables(settings, change)),
        charsets=dict(charsets),
    )


def _concerns(settings: Settings, change: SchemaChange, *, follows: bool) -> bool:
    """Whether the statement may be about a captured table, or a database that has any. Others are no reason for a
    batch. `follows`: whether it may be about any table of such a database."""
    included = settings.tables
    if change.tables is None:
        return not change.database or included.may_include_database(change.database)
    if not change.tables:
        statements = table_statements(change.sql, "", change.session.sql_mode)
        return any(included.may_include_database(each.database) for each in statements)
    if follows and any(included.may_include_database(table.database) for table in change.tables):
        return True
    signal_table = str(included.signal_table or "").lower()
    return any(included.included(table) or str(table).lower() == signal_table for table in change.tables)


def truncated_tables(settings: Settings, change: SchemaChange) -> list[TableId]:
    """The included tables of which an ``op: "t"`` record tells that they were emptied, as the statement names them."""
    if not change.truncates or "t" in settings.skipped_operations or change.tables is None:
        return []
    return [table for table in sorted(change.tables) if settings.tables.included(table)]


@dataclass(frozen=True, slots=True)
class _Reported:
    """What a statement of the batch says of one captured table, or of a database.

    ``names``: all its captured tables, as the source block shows them. ``is_last``: no later statement of the batch
    defines that table anew, so what the server has at the batch's end is what it is right behind this one.
    """

    statement: TableStatement
    origin: Origin
    names: str | None
    is_last: bool

    @property
    def described(self) -> TableId | None:
        """The table whose definition the record shows, where it is certain."""
        return self.statement.table if self.is_last and self.statement.type != "DROP" else None


def statement_records(
    settings: Settings, definitions: DefinitionsAt, advance: Advance, now_us: int, *, first: bool
) -> tuple[ControlRecord, ...]:
    """What is told of a batch's statements, in the order of the binlog; ``first``: a job's first batch begins with all
    tables as they are. Records of the schema change topic come before truncations."""
    if not advance.changes and not first:
        return ()
    stored_lower = stores_lower_case(definitions.connection) if advance.changes else False
    records: list[ControlRecord] = []
    if (topic := schema_topic(settings)) is not None:
        records += _schema_changes(settings, topic, definitions, advance, now_us, stored_lower, first=first)
    for change in advance.changes:
        for table in truncated_tables(settings, change):
            record = _truncation(settings, definitions, _stored(table, stored_lower), change, now_us)
            records += [] if record is None else [record]
    return tuple(records)


def _schema_changes(
    settings: Settings,
    control_topic: ControlTopic,
    definitions: DefinitionsAt,
    advance: Advance,
    now_us: int,
    stored_lower: bool,
    *,
    first: bool,
) -> list[ControlRecord]:
    """The tables that are there at a job's beginning, then what the statements say."""
    reported = list(_reported(settings, advance.changes, stored_lower=stored_lower))
    existing = tables(definitions.connection, settings.tables) if first else []
    unchanged = [table for table in existing if not redefined(table, advance.changes)]
    described = [each.described for each in reported if each.described is not None]
    certain, problem = definitions.certain([*described, *unchanged], _FIRST_SECONDS if first else WAIT_SECONDS)
    topic = SchemaTopic(settings, control_topic, now_us)
    records: list[ControlRecord] = []
    certain_tables = [table for table in existing if table in certain]
    for table in existing:
        if table not in certain:
            log.warning(
                "The topic %s does not tell what %s was when the job began: %s",
                control_topic.name,
                table,
                problem or "a statement about it came by meanwhile",
            )
    # As Debezium's snapshot of schemas has it.
    at_beginning = SourceConstants(advance.end.file, advance.end.pos, now_us, snapshot="true")
    for table in certain_tables:
        source = replace(at_beginning, snapshot="last") if table == certain_tables[-1] else at_beginning
        records.append(topic.existing(table, certain[table], source))
    for each in reported:
        definition = certain.get(each.described) if each.described is not None else None
        records.append(topic.changed(each.statement, each.names, definition, _source(each.origin)))
    return records


def _reported(settings: Settings, changes: Sequence[SchemaChange], *, stored_lower: bool) -> Iterator[_Reported]:
    """What is told of the batch's statements, one for each table and database that is captured."""
    for number, change in enumerate(changes):
        if change.origin is None:
            continue
        statements = list(_captured(settings, change, stored_lower=stored_lower))
        names = ",".join(each.table.table for each in statements if each.table is not None) or None
        for each in statements:
            is_last = each.table is None or not redefined(each.table, changes[number + 1 :])
            yield _Reported(each, change.origin, names, is_last)


def _captured(settings: Settings, change: SchemaChange, *, stored_lower: bool) -> Iterator[TableStatement]:
    """The parts of the statement that are about captured tables, or databases that may have any."""
    included = settings.tables
    for each in table_statements(change.sql, change.session.database, change.session.sql_mode):
        if each.table is None:
            if included.may_include_database(each.database):
                yield each
            continue
        table = _stored(each.table, stored_lower)
        if included.included(table):
            yield TableStatement(each.type, table.database, table, each.ddl)


def _truncation(
    settings: Settings, definitions: DefinitionsAt, table: TableId, change: SchemaChange, now_us: int
) -> ControlRecord | None:
    shape = shape_of(definitions.connection, table)
    if settings.formats.show_schemas:
        if shape is None:
            log.warning("%s is gone: its TRUNCATE cannot be written with a schema and is left out", table)
            return None
        shape = shape_with_defaults(definitions.connection, shape, definitions=settings.columns.needs_definitions)
    written = format_of(settings, shape or TableShape(table, ())).written[TRUNCATION]
    if written is None or written.envelope is None:
        return None
    assert change.origin is not None
    return ControlRecord(written.form.topic, None, written.envelope.truncation(_source(change.origin), now_us))


def _stored(table: TableId, lower: bool) -> TableId:
    return TableId(table.database.lower(), table.table.lower()) if lower else table


def _source(origin: Origin) -> SourceConstants:
    """The source block of a statement's record. Debezium gives its time in whole milliseconds."""
    ts_us = origin.ts_us // 1000 * 1000
    return SourceConstants(
        origin.file, origin.pos, ts_us, origin.server_id, origin.gtid, origin.thread, snapshot="false"
    )
