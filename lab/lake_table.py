"""The comparison of a lake's table with its MySQL table, row by row.

delta-rs or PyIceberg reads the lake's table, and PyMySQL the other. Spark and incsnap are not used, because a defect of
theirs must not hide itself.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyiceberg.table import StaticTable
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.tables import TableId
from lab.compare import Comparison

Row = dict[str, Any]


def compare_with_lake(connection: Connection[Cursor], table: TableId, lake: Path) -> Comparison:
    """Compare the MySQL table with the lake's table in the folder `lake`.

    The columns must have types that become the same Python values on both sides. The MySQL table must have a primary
    key, and no session may be writing to it.
    """
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
    """Return the rows of the newest version of the lake's table. Return none if the table does not exist yet."""
    table = _iceberg(lake)
    rows: list[Row] = (_delta(lake) if table is None else table.scan().to_arrow()).to_pylist()
    return rows


def has_row(lake: Path, column: str, operator: str, value: int) -> bool:
    """Whether the lake's table has a row for which `column operator value` holds, such as `version > 0`."""
    table = _iceberg(lake)
    if table is None:
        return bool(_delta(lake, columns=[column], filters=[(column, operator, value)]).num_rows)
    return bool(table.scan(f"{column} {operator} {value}", (column,)).to_arrow().num_rows)


def _delta(lake: Path, **chosen: Any) -> pa.Table:
    try:
        table = DeltaTable(str(lake))
    except TableNotFoundError:
        return pa.table({})
    return table.to_pyarrow_table(**chosen)


def _iceberg(lake: Path) -> StaticTable | None:
    """Return the newest version of the Iceberg table, or None if there is no such table.

    The catalog is not used: the file in which it names the newest version is written later than that version.
    """
    versions = (lake / "metadata").glob("v*.metadata.json")
    newest = max(versions, key=lambda file: int(file.name[1:].partition(".")[0]), default=None)
    return None if newest is None else StaticTable.from_metadata(str(newest))


def _as_mysql(value: Any) -> Any:
    """Return a timestamp without its time zone, as PyMySQL does. The zone is UTC here."""
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
