"""The tables that are being read and whose key has another column behind a statement, under the former column's name.

A snapshot goes on behind a statement if the key's columns look as before. `DROP COLUMN id, ADD COLUMN id INT ...` keeps
the look of the key, but gives each row another key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from incsnap.ddl.column_origins import replaced_columns
from incsnap.envelope.column_rules import ColumnRules, matches
from incsnap.events import UNKNOWN, SchemaChange
from incsnap.planner.altered_tables import statements_about
from incsnap.snapshot.context import Scan
from incsnap.tables import TableId


def tables_with_replaced_keys(
    scans: Iterable[Scan], changes: Sequence[SchemaChange], columns: ColumnRules
) -> frozenset[TableId]:
    """Return the tables of `scans` of whose key a column is another one behind `changes`, the statements of a batch.

    The key's columns are those that order the chunks and those of `message.key.columns`, which `columns` has.
    """
    return frozenset(
        scan.table
        for scan in scans
        for change in changes
        if change.touches(scan.table) and _replaces_key(scan, change, columns)
    )


def _replaces_key(scan: Scan, change: SchemaChange, columns: ColumnRules) -> bool:
    """Return True if a column of the table's key may be another one behind the statement.

    Each statement is looked at by itself. If one frees a name and a later one gives it to another column, the later one
    is found. The swap of a tool whose alteration is not known may have replaced any column.
    """
    if change.online.alteration_of(scan.table) == UNKNOWN:
        return True
    statements = statements_about(scan.table, change) if change.tables is not None else [change.sql]
    replaced = replaced_columns(statements, change.session)
    if replaced is None:
        return True
    key, patterns = {name.lower() for name in scan.columns}, columns.key_patterns()
    return any(name in key or matches(patterns, f"{scan.table}.{name}") for name in replaced)
