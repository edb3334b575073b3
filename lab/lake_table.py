"""A Delta table beside its MySQL table, row by row: the one read by delta-rs, the other by PyMySQL.

Neither Spark nor incsnap reads here, for a defect of theirs must not hide itself.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.tables import TableId
from lab.compare import Comparison

Row = dict[str, Any]


def compare_with_lake(connection: Connection[Cursor], table: TableId, lake: Path) -> Comparison:
    """Types whose values Python has on both sides alone. The MySQL table must have a primary key and be at rest."""
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM {table.sql}")
        types = {each[0]: each[1] for each in cursor.description}
        rows = [dict(zip(types, row, strict=True)) for row in cursor.fetchall()]
        cursor.execute(
            "SELECT column_name FROM information_schema.key_column_usage WHERE table_schema = %s AND table_name = %s"
            " AND constraint_name = 'PRIMARY' ORDER BY ordinal_position",
            (table.database, table.table),
        )
        key = [name for (name,) in cursor.fetchall()]
    of_lake: dict[tuple[Any, ...], Row] = {}
    result = Comparison(rows=len(rows))
    for row in rows_of_lake(lake):
        identity = tuple(row[name] for name in key)
        if identity in of_lake:
            result.extra.add(f"key {identity}, twice")
        of_lake[identity] = {name: _as_mysql(value) for name, value in row.items()}
    for row in rows:
        identity = tuple(row[name] for name in key)
        lake_row = of_lake.pop(identity, None)
        if lake_row is None:
            result.missing.add(f"key {identity}")
        elif lake_row != row:
            parts = [f"{name} is {row.get(name)!r}, there {lake_row.get(name)!r}" for name in {**row, **lake_row}]
            result.different.add(f"key {identity}: {', '.join(parts)}")
    for identity in of_lake:
        result.extra.add(f"key {identity}")
    return result


def rows_of_lake(lake: Path) -> list[Row]:
    """The rows of its newest version; none where there is no table yet."""
    try:
        table = DeltaTable(str(lake))
    except TableNotFoundError:
        return []
    rows: list[Row] = table.to_pyarrow_table().to_pylist()
    return rows


def has_row(lake: Path, column: str, operator: str, value: int) -> bool:
    """Is there a row whose ``column`` is so? ``operator``: ``=``, ``>``."""
    try:
        table = DeltaTable(str(lake))
    except TableNotFoundError:
        return False
    return bool(table.to_pyarrow_table(columns=[column], filters=[(column, operator, value)]).num_rows)


def _as_mysql(value: Any) -> Any:
    """PyMySQL gives a TIMESTAMP without its zone, which is UTC here."""
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
