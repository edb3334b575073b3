"""The records that report statements: those that define tables, and those that empty tables.

A statement that defines a table is reported on the schema change topic. TRUNCATE is reported with `op: "t"` on the
table's own topic. Each statement is reported, but the table's definition after it only if it is certain
(`definitions`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.capture_options import CaptureOptions
from incsnap.binlog.table_rows import Charsets
from incsnap.checkpoint.control_records import ControlRecord
from incsnap.config.patterns import is_builtin
from incsnap.config.settings import Settings
from incsnap.config.topics import ControlTopic, schema_topic
from incsnap.ddl.online_tables import OnlineTables
from incsnap.ddl.table_statements import TableStatement, table_statements
from incsnap.envelope import control_records
from incsnap.envelope.control_schemas import SCHEMA_CHANGE_VALUE
from incsnap.envelope.record_encoder import TRUNCATION
from incsnap.envelope.seam import Seam
from incsnap.envelope.sources import SourceConstants
from incsnap.events import Origin, SchemaChange
from incsnap.mysql.catalog import lower_case_table_names, shape_of, tables
from incsnap.mysql.column_defaults import shape_with_defaults
from incsnap.mysql.table_definitions import Definition, in_release
from incsnap.planner.definitions import WAIT_SECONDS, DefinitionsAt, redefined
from incsnap.planner.frame_alterations import alteration_records, alters_frame
from incsnap.tables import TableId, TableShape
from incsnap.tasks.formats import format_of, struct_formats
from incsnap.version import __version__

log = logging.getLogger(__name__)

#: Seconds that a job's first batch waits for definitions. No later batch reports which tables existed.
_FIRST_SECONDS = 30.0


def capture_options(
    settings: Settings, charsets: Charsets, *, follows: bool, online: OnlineTables | None = None
) -> CaptureOptions:
    """Return what the stream must bring besides rows, and which rows it leaves out.

    `charsets` are the server's collations and their character sets. `follows`: also bring statements about tables that
    are not captured: such a table may be renamed to a captured one, or copied. `online`: as in `CaptureOptions`.
    """
    return CaptureOptions(
        settings.include_query,
        concerns=lambda change: _concerns(settings, change, follows=follows, reports=reports_all(settings)),
        ends_batch=lambda change: alters_frame(settings, change) or bool(truncated_tables(settings, change)),
        is_captured=lambda change: _concerns(settings, change, follows=False, reports=False),
        charsets=dict(charsets),
        online=online,
        watches=settings.tables.may_include_database,
    )


def reports_all(settings: Settings) -> bool:
    """Whether the schema change topic also has statements about tables that are not captured, in databases that may
    have captured tables."""
    return schema_topic(settings) is not None and not settings.only_captured_ddl


def _concerns(settings: Settings, change: SchemaChange, *, follows: bool, reports: bool) -> bool:
    """Whether the statement may be about a captured table, or about a database that may have captured tables.

    Other statements are no reason for a batch. `follows`: any table or database counts, except the server's own.
    `reports`: any table of a database that may have captured tables counts.
    """
    included = settings.tables
    may_concern = _is_of_users if follows else included.may_include_database
    if change.tables is None:
        return not change.database or may_concern(change.database)
    if not change.tables:
        statements = table_statements(change.sql, "", change.session.sql_mode)
        return any(may_concern(each.database) for each in statements)
    if follows and any(_is_of_users(table.database) for table in change.tables):
        return True
    if reports and any(included.has_database(table.database) for table in change.tables):
        return True
    signal_table = str(included.signal_table or "").lower()
    return any(included.included(table) or table.folded == signal_table for table in change.tables)


def _is_of_users(database: str) -> bool:
    return not is_builtin(database)


def truncated_tables(settings: Settings, change: SchemaChange) -> list[TableId]:
    """Return the captured tables that the statement empties and that get an `op: "t"` record, as the statement names
    them."""
    if not change.truncates or "t" in settings.skipped_operations or change.tables is None:
        return []
    captured = (table for table in sorted(change.tables) if settings.tables.included(table))
    return [table for table in captured if not change.online.hides(table)]


@dataclass(frozen=True, slots=True)
class _Reported:
    """A table that is reported, or a database, of a statement of the batch."""

    statement: TableStatement  #: the part of the statement that is about the table or database
    origin: Origin  #: place of the statement in the binlog
    names: str | None  #: all reported tables of the statement, as the source block shows them; None for none
    #: Whether no later statement of the batch redefines the table. Then the server's definition at the batch's end is
    #: also the definition right after this statement.
    is_last: bool
    change: SchemaChange  #: the whole statement
    is_captured: bool  #: whether the table is captured; False for a database

    @property
    def described(self) -> TableId | None:
        """Return the table whose definition the record shows if it is certain; None if the record shows none."""
        return self.statement.table if self.is_last and self.statement.type != "DROP" else None

    def defines_nothing(self, definition: Definition | None) -> bool:
        """Whether the statement has defined nothing that Debezium shows of its table.

        `definition`: the table's behind the statement, None if it is not certain.
        """
        if self.statement.index:
            return not self.is_captured or (definition is not None and not definition.needs_key(self.statement.index))
        # The statement has named no transaction of InnoDB. A table of another engine may be new. A view has no engine.
        return self.statement.if_absent and (definition is None or definition.engine in ("InnoDB", ""))

    def as_text(self) -> _Reported:
        """Return the statement without its table."""
        text = TableStatement("TEXT", self.change.session.database, None, self.change.sql)
        return replace(self, statement=text, names="")


def statement_records(
    settings: Settings,
    definitions: DefinitionsAt,
    advance: Advance,
    now_us: int,
    *,
    first: bool,
    online: OnlineTables = OnlineTables(),  # noqa: B008 - frozen
    seam: Seam | None = None,
) -> tuple[ControlRecord, ...]:
    """Return the records of a batch's statements, in the order of the binlog, truncations last.

    `first`: a job's first batch begins with the definitions of all captured tables. `now_us`: time of the records, in
    microseconds since 1970. `online` are the tables of tools for online schema changes, which are not reported. `seam`:
    the records that another engine has sent, which are left out.
    """
    truncations: list[SchemaChange] = [each for each in advance.changes if each.truncates]
    if seam is not None:
        truncations = [each for each in truncations if not _is_at(each, seam.has_truncation)]
        left = [change for change in advance.changes if not _is_at(change, seam.has_statement)]
        advance = replace(advance, changes=tuple(left))
    if not advance.changes and not truncations and not first:
        return ()
    stored_lower = bool(advance.changes or truncations) and lower_case_table_names(definitions.connection) == 1
    records: list[ControlRecord] = []
    if (topic := schema_topic(settings)) is not None:
        existing = _existing(settings, definitions.connection, online) if first else []
        records += _schema_changes(settings, topic, definitions, advance, now_us, stored_lower, existing)
    records += alteration_records(settings, definitions, advance.changes)
    for change in truncations:
        for table in truncated_tables(settings, change):
            record = _truncation(settings, definitions, _stored(table, stored_lower), change, now_us)
            records += [] if record is None else [record]
    return tuple(records)


def _is_at(change: SchemaChange, has: Callable[[str, int], bool]) -> bool:
    """Return True if another engine has reported the statement, as `has` says of its place."""
    return change.origin is not None and has(change.origin.file, change.origin.pos)


def _existing(settings: Settings, connection: Connection[Any], online: OnlineTables) -> list[TableId]:
    """Return the tables that a job's first batch reports."""
    reported_tables = settings.tables.of_whole_databases() if reports_all(settings) else settings.tables
    return online.without_tables_of_tools(tables(connection, reported_tables))


def _schema_changes(
    settings: Settings,
    topic: ControlTopic,
    definitions: DefinitionsAt,
    advance: Advance,
    now_us: int,
    stored_lower: bool,
    existing: Sequence[TableId],
) -> list[ControlRecord]:
    """Return the records of the schema change topic: `existing`, the tables that exist at a job's beginning, and the
    statements."""
    reported = list(_reported(settings, advance.changes, stored_lower=stored_lower))
    zones = {table: "" for table in existing if not redefined(table, advance.changes)}
    zones |= {each.described: each.change.session.time_zone for each in reported if each.described is not None}
    certain, problem = definitions.certain(zones, _FIRST_SECONDS if existing else WAIT_SECONDS)
    records: list[ControlRecord] = []
    for table in existing:
        if table not in certain:
            log.warning(
                "Topic %s gets no definition of %s at the job's beginning: %s",
                topic.name,
                table,
                problem or "a statement has changed the table meanwhile",
            )
    # The source block is that of Debezium's snapshot of schemas. Its last record marks the snapshot's end, unless rows
    # follow.
    existing = [table for table in existing if table in certain]
    at_beginning = SourceConstants(advance.end.file, advance.end.pos, now_us, snapshot="true")
    for table in existing:
        is_end = table == existing[-1] and not settings.snapshot.reads_at_start
        source = replace(at_beginning, snapshot="last") if is_end else at_beginning
        statement = TableStatement("CREATE", table.database, table, certain[table].ddl)
        records.append(_schema_change(settings, topic, statement, table.table, certain[table], source, now_us))
    for each in reported:
        definition = certain.get(each.described) if each.described is not None else None
        shown = each
        if each.defines_nothing(definition):
            if not reports_all(settings):
                continue
            shown = each.as_text()
        source = _source(each.origin)
        records.append(_schema_change(settings, topic, shown.statement, shown.names, definition, source, now_us))
    return records


def _schema_change(
    settings: Settings,
    topic: ControlTopic,
    statement: TableStatement,
    names: str | None,
    definition: Definition | None,
    source: SourceConstants,
    now_us: int,
) -> ControlRecord:
    """Return the record of a statement on the schema change topic.

    `names` are the reported tables of the whole statement. `definition` is that of the statement's table after the
    statement; None if there is no table or the definition is not certain.
    """
    changes = []
    if statement.table is not None:
        if statement.type == "DROP" or definition is not None:
            shown = None if definition is None else in_release(definition.shown, settings.modes.debezium)
            changes.append(control_records.table_change(statement.type, statement.table, shown))
        else:
            log.warning(
                "%s:%d: the definition of %s after a statement cannot be told any more; tableChanges is empty",
                source.file,
                source.pos,
                statement.table,
            )
    value = control_records.schema_change(
        __version__,
        settings.topic_prefix,
        source,
        statement.database,
        names,
        statement.ddl,
        changes,
        now_us // 1000,
    )
    key_format, value_format = struct_formats(settings)
    return ControlRecord(
        topic.name,
        key_format.struct(f"{topic.name}-key", topic.key_schema, topic.key({"databaseName": statement.database})),
        value_format.struct(f"{topic.name}-value", SCHEMA_CHANGE_VALUE, value),
    )


def _reported(settings: Settings, changes: Sequence[SchemaChange], *, stored_lower: bool) -> Iterator[_Reported]:
    """Yield each reported table and each database of the batch's statements."""
    for number, change in enumerate(changes):
        if change.origin is None:
            continue
        statements = list(_captured(settings, change, stored_lower=stored_lower))
        names = ",".join(each.table.table for each in statements if each.table is not None) or None
        if any(each.type == "TEXT" for each in statements):
            names = ""
        for each in statements:
            is_last = each.table is None or not redefined(each.table, changes[number + 1 :])
            is_captured = each.table is not None and settings.tables.included(each.table)
            yield _Reported(each, change.origin, names, is_last, change, is_captured)


def _captured(settings: Settings, change: SchemaChange, *, stored_lower: bool) -> Iterator[TableStatement]:
    """Yield the parts of the statement that are about reported tables, or about databases that may have captured
    tables."""
    included = settings.tables
    for each in table_statements(change.sql, change.session.database, change.session.sql_mode):
        if each.table is not None and change.online.hides(each.table):
            continue
        if each.type == "TEXT":
            if reports_all(settings) and included.has_database(each.database):
                yield replace(each, database=change.session.database)
            continue
        if each.table is None:
            if included.may_include_database(each.database):
                yield each
            continue
        table = _stored(each.table, stored_lower)
        if included.included(table) or (reports_all(settings) and included.has_database(table.database)):
            yield replace(
                each,
                database=table.database,
                table=table,
                ddl=change.online.text_of(table) or each.ddl,
                if_absent=each.if_absent and not (change.has_xid or change.in_transaction),
            )


def _truncation(
    settings: Settings, definitions: DefinitionsAt, table: TableId, change: SchemaChange, now_us: int
) -> ControlRecord | None:
    """Return the `op: "t"` record of an emptied table.

    Return None, with a warning, if the table is gone and a schema is needed. Return None too if a transform drops the
    record.
    """
    shape = shape_of(definitions.connection, table)
    if settings.formats.show_schemas:
        if shape is None:
            log.warning("%s does not exist any more: the record of its TRUNCATE needs a schema and is left out", table)
            return None
        shape = shape_with_defaults(definitions.connection, shape, definitions=settings.columns.needs_definitions)
    encoder = format_of(settings, shape or TableShape(table, ())).encoders[TRUNCATION]
    if encoder is None or encoder.envelope is None:
        return None
    assert change.origin is not None
    return ControlRecord(encoder.spec.topic, None, encoder.envelope.truncation(_source(change.origin), now_us))


def _stored(table: TableId, lower: bool) -> TableId:
    return TableId(table.database.lower(), table.table.lower()) if lower else table


def _source(origin: Origin) -> SourceConstants:
    """Return the source block of a statement's record. Its time is in whole milliseconds, as in Debezium."""
    ts_us = origin.ts_us // 1000 * 1000
    return SourceConstants(
        origin.file, origin.pos, ts_us, origin.server_id, origin.gtid, origin.thread, snapshot="false"
    )
