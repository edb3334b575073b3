"""The rows behind a connector's offset that do not name their columns (`binlog_row_metadata=MINIMAL`).

Debezium knows their tables by its schema history. A job asks the server, which tells the present definitions only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pymysql.connections import Connection

from incsnap.config.patterns import TableFilter
from incsnap.config.settings import Settings
from incsnap.ddl.table_statements import table_statements
from incsnap.errors import ConfigError
from incsnap.events import SchemaChange
from incsnap.mysql.row_definitions import leaves_names_out
from incsnap.planner.definition_history import quoted, redefines
from incsnap.tables import TableId
from incsnap.takeover.offset_place import STOP_CLEANLY


def refuse_redefined(connection: Connection[Any], settings: Settings, changes: Iterable[SchemaChange]) -> None:
    """Raise ConfigError if a statement has changed a table whose rows do not name their columns.

    `changes`: the statements behind the connector's offset. The job would stop at rows before the statement. With
    `inconsistent.schema.handling.mode` other than `fail` the job leaves them out and reads the table again, so nothing
    is refused.
    """
    if settings.failures.inconsistent_schema != "fail" or not leaves_names_out(connection):
        return
    if change := redefining(changes, settings.tables):
        raise ConfigError(
            f"with binlog_row_metadata=MINIMAL the job could not read rows before {quoted(change)}, which is behind the"
            " connector's offset",
            STOP_CLEANLY,
        )


def redefining(changes: Iterable[SchemaChange], included: TableFilter) -> SchemaChange | None:
    """Return the first statement before which a captured table may have rows of another definition; None for none.

    A table has no rows before its CREATE TABLE.
    """
    for change in changes:
        statements = table_statements(change.sql, change.session.database, change.session.sql_mode)
        creates = bool(statements) and all(each.type == "CREATE" for each in statements)
        if not creates and any(redefines(change, table) for table in _captured(change, included)):
            return change
    return None


def _captured(change: SchemaChange, included: TableFilter) -> Iterable[TableId]:
    """Return the captured tables that the statement names, or one that stands for those of its database."""
    if change.tables is None:
        is_captured = not change.database or included.may_include_database(change.database)
        return [TableId(change.database, "")] if is_captured else []
    return [each for each in change.tables if included.included(each)]
