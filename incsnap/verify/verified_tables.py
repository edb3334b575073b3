"""The choice of tables that can be compared, and the reasons why others cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.config.settings import Settings
from incsnap.mysql import catalog
from incsnap.mysql.column_defaults import defaults_of
from incsnap.mysql.session import query
from incsnap.tables import TableId, TableShape
from incsnap.tasks.formats import format_of
from incsnap.verify.record_reading import RecordForm, for_table
from incsnap.verify.table_side import VerifiedTable


class TableRefused(Exception):
    """An error: a table cannot be compared."""


def shapes_to_compare(
    connection: Connection[Any], settings: Settings, captured: Sequence[TableId]
) -> dict[TableId, TableShape]:
    """Return the columns and keys of the captured tables, with defaults if the table side needs them."""
    shapes = catalog.shapes_of(connection, captured)
    if for_table(settings).asks_for_columns:
        defaults = defaults_of(connection, list(shapes), definitions=settings.columns.needs_definitions)
        shapes = {table: shape.with_defaults(defaults[table]) for table, shape in shapes.items()}
    return shapes


def verified_table(
    connection: Connection[Any],
    settings: Settings,
    shape: TableShape,
    owners: Mapping[str, Sequence[TableId]],
    counts: Mapping[str, int],
) -> VerifiedTable | None:
    """Return how a table is compared; None for a table without rows whose topic does not exist.

    Raise TableRefused if the table cannot be compared, and errors of its format.
    """
    format_ = format_of(for_table(settings), shape)
    form = RecordForm.of(format_, settings.formats)
    if not format_.view.key or not format_.view.identity:
        raise TableRefused("It has no primary key, so its records have no keys.")
    if not format_.view.key_is_identity:
        raise TableRefused("message.key.columns gives its records other keys than its primary key.")
    if settings.skipped_operations - {"t"}:
        raise TableRefused("skipped.operations leaves changes out of its topic.")
    others = [table for table in owners.get(format_.topic, ()) if table != shape.id]
    if others:
        raise TableRefused(f"{others[0]} goes to the same topic, and keys do not tell the table.")
    if format_.topic not in counts:
        if not query(connection, f"SELECT 1 FROM {shape.id.sql} LIMIT 1"):
            return None
        raise TableRefused(f"Topic {format_.topic} does not exist.")
    return VerifiedTable(shape, format_.topic, counts[format_.topic], form)


def without_defaults(shape: TableShape) -> TableShape:
    """Return the shape as the catalogue gives it, without defaults."""
    return TableShape(shape.id, shape.columns, shape.key)
