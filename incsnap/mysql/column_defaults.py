"""The DEFAULT, the defined type and the comment of columns. Only schemas need them, and no table map has them.

`KnownDefaults` asks the server once for each table, and again when a statement has changed the table. If the stream
lags, the server answers with its present values, not with those at the time of the change. Debezium follows each
statement, so it has the values of the time of the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.errors import IncsnapError
from incsnap.events import SchemaChange
from incsnap.mysql.session import query
from incsnap.mysql.table_definitions import as_printed, source_type
from incsnap.tables import Declared, Defaults, TableDefaults, TableId, TableShape, quote

#: An expression such as `DEFAULT (UUID())` is not a value. information_schema also marks CURRENT_TIMESTAMP as an
#: expression, but schemas can show CURRENT_TIMESTAMP.
_VALUE = "EXTRA NOT LIKE '%%DEFAULT_GENERATED%%' OR COLUMN_DEFAULT LIKE 'CURRENT_TIMESTAMP%%'"
_DEFAULT = f"COLUMN_DEFAULT IS NOT NULL AND ({_VALUE})"
_ALL = (
    f"SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), IF({_DEFAULT}, COLUMN_DEFAULT, NULL),"
    " COLUMN_TYPE, COLUMN_COMMENT FROM information_schema.COLUMNS WHERE (TABLE_SCHEMA, TABLE_NAME) IN %s"
)
#: Milliseconds that the query for exact DEFAULTs of a table may take. A statement on the table may block the query.
_EXACT_MS = 1_000
#: A FLOAT that is shown with so many digits may be cut, because the server prints six.
_FLOAT_DIGITS = 6
_ORDER = " ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
#: Tables in `KnownDefaults`, about 0.5 MB as JSON. Beyond this number only the tables of the present call are kept.
_MOST = 1_000


def defaults_of(
    connection: Connection[Any], tables: Sequence[TableId], *, definitions: bool = False
) -> dict[TableId, Defaults]:
    """Return the present DEFAULTs, with an entry for each of `tables`.

    With `definitions` include defined types and comments. Without it leave out columns that have no DEFAULT.
    """
    by_table: dict[TableId, list[Declared]] = {table: [] for table in tables}
    if not tables:
        return {}
    names = tuple((table.database, table.table) for table in tables)
    sql = _ALL + ("" if definitions else f" AND {_DEFAULT}") + _ORDER
    for database, name, column, kind, default, defined, comment in query(connection, sql, (names,)):
        declared = Declared(str(column), str(kind), None if default is None else str(default))
        if definitions:
            declared = declared._replace(source=source_type(_text(defined)), comment=as_printed(str(comment)))
        by_table.setdefault(TableId(str(database), str(name)), []).append(declared)
    return {table: _exact(connection, table, columns) for table, columns in by_table.items()}


def _exact(connection: Connection[Any], table: TableId, columns: Sequence[Declared]) -> Defaults:
    """Return `columns` with the DEFAULTs that rows really get, if information_schema shows less.

    information_schema shows a question mark for a character above U+FFFF, bytes only up to the first zero byte, and six
    digits of a FLOAT. If the server refuses the query or a lock blocks it, keep the values of information_schema.
    """
    unsure = [index for index, column in enumerate(columns) if _may_be_cut(column)]
    if not unsure:
        return tuple(columns)
    values = ", ".join(_exact_value(columns[index]) for index in unsure)
    # The join has no row of the table, so DEFAULT() is evaluated without reading any.
    sql = f"SELECT /*+ MAX_EXECUTION_TIME({_EXACT_MS}) */ {values} FROM (SELECT 1) one LEFT JOIN {table.sql} t ON FALSE"
    try:
        [row] = query(connection, sql)
    except IncsnapError:
        return tuple(columns)
    exact = dict(zip(unsure, row, strict=True))
    return tuple(
        column if exact.get(index) is None else column._replace(default=_shown(exact[index], column.type))
        for index, column in enumerate(columns)
    )


def _may_be_cut(column: Declared) -> bool:
    """Return True if information_schema may show the DEFAULT incompletely."""
    if column.default is None:
        return False
    if column.type == "float":
        return sum(map(str.isdigit, column.default.partition("e")[0])) >= _FLOAT_DIGITS
    return column.type in ("binary", "varbinary") or (column.type in ("char", "varchar") and "?" in column.default)


def _exact_value(column: Declared) -> str:
    """Return the SQL expression for the exact DEFAULT of a column."""
    value = f"DEFAULT(t.{quote(column.column)})"
    if column.type == "float":
        return f"{value} * 1e0"
    return f"HEX({value})" if column.type.endswith("binary") else value


def _shown(value: object, kind: str) -> str:
    return f"0x{value}" if kind.endswith("binary") else str(value)


def _text(value: object) -> str:
    """Return COLUMN_TYPE as text. Some servers send it as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


class KnownDefaults:
    """A cache of the columns' DEFAULTs in the planner's process. With `definitions` the cache has the columns' types
    and comments too.
    """

    def __init__(self, *, definitions: bool = False) -> None:
        self._definitions = definitions
        self._known: dict[TableId, Defaults] = {}

    def learned(
        self, connection: Connection[Any], tables: Iterable[TableId], changes: Iterable[SchemaChange]
    ) -> TableDefaults:
        """Return the known DEFAULTs, sorted by table, after asking the server for those of `tables` that are missing.

        `changes` are the statements since the last call. The tables that they changed are forgotten first, so they are
        asked for again when `tables` names them. Tables without any DEFAULT are left out.
        """
        asked_for = set(tables)
        for change in changes:
            self._known = {table: defaults for table, defaults in self._known.items() if not change.touches(table)}
        if len(self._known) + len(asked_for) > _MOST:
            self._known = {table: defaults for table, defaults in self._known.items() if table in asked_for}
        self._known |= defaults_of(connection, sorted(asked_for - self._known.keys()), definitions=self._definitions)
        return tuple((table, defaults) for table, defaults in sorted(self._known.items()) if defaults)


def shape_with_defaults(connection: Connection[Any], shape: TableShape, *, definitions: bool = False) -> TableShape:
    """Return `shape` with the present DEFAULTs of its columns, and with types and comments if `definitions` is True."""
    return shape.with_defaults(defaults_of(connection, [shape.id], definitions=definitions)[shape.id])
