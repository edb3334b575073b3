"""The connection to the modelled server: it answers the SQL of the product's readers and planner.

SQLite runs the statements on rows, on the rows that are visible at that moment. The model itself answers statements
about the catalog, the watermarks and the end of the binlog. Anything may happen on the server between two statements.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Self

import pyarrow as pa
import pymysql

from incsnap.errors import ChunkFailed, ValueRefused
from incsnap.gtid import GtidSet
from incsnap.tables import TableId, TableShape
from incsnap.types.column_type import describe
from tests.property.server_model import TABLES, Row, Server

KEYS = {table: ("k", "l")[:width] for table, width in TABLES.items()}
#: The directions of the key's columns in its index. A key of two columns has both.
DIRECTIONS = {"k": "A", "l": "D"}
#: Types of the key's first column. A DDL that changes the key gives it the next one.
_TYPES = ("int", "bigint", "mediumint", "smallint")
_SQLITE = sqlite3.connect(":memory:", check_same_thread=False)
for _table, _names in KEYS.items():
    _SQLITE.execute(f"CREATE TABLE {_table.table} ({', '.join((*_names, 'v', 's'))})")

Rows = Sequence[tuple[Any, ...]]


def columns_of(table: TableId, key_shape: int = 0) -> list[tuple[str, str]]:
    """Return (name, type) of each column: the key, `v`, the row's version, and `s`, the number of DDLs before it."""
    names = (*KEYS[table], "v", "s")
    return [(name, _TYPES[key_shape % len(_TYPES)] if name == "k" else "int") for name in names]


class ServerConnection:
    """A model of a PyMySQL connection, as far as it is used.

    If `faulty`, statements sometimes fail with an error of MySQL.
    """

    open = True

    def __init__(self, server: Server, *, faulty: bool = False, poison: Row | None = None) -> None:
        self.server = server
        self.faulty = faulty
        self.poison = poison
        #: How often the server's identity was asked. The rows of a chunk have this number as their source.
        self.identified = 0
        self._rows: Rows = ()

    def cursor(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def ping(self, *, reconnect: bool) -> None: ...

    def close(self) -> None: ...

    def get_server_info(self) -> str:
        return "9.7.0"

    def execute(self, sql: str, arguments: Any = None) -> None:
        if self.faulty and self.server.random.random() < 0.03:
            raise pymysql.err.OperationalError(self.server.random.choice((1213, 2013)), "by chance")
        self._rows = next(answer for begin, answer in self._answers().items() if re.match(begin, sql))(sql, arguments)
        if self.server.random.random() < 0.3:
            self.server.step()

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> Rows:
        return self._rows

    def _answers(self) -> dict[str, Callable[[str, Any], Rows]]:
        return {
            "SELECT WAIT_FOR_EXECUTED_GTID_SET": self._wait,
            "SHOW BINARY LOG STATUS": lambda *_: [self.server.position(len(self.server.log))],
            "SELECT @@server_id, @@server_uuid": self._identity,
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS": self._keys,
            "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME": self._indexes,
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_KEY": self._columns,
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLLATION_NAME": lambda *_: [],
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, LOWER": lambda *_: [],  # no column has a DEFAULT
            "SELECT TRIGGER_NAME": lambda *_: [],
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES": lambda *_: [
                (table.database, table.table) for table in TABLES
            ],
            r"SELECT /\*": lambda sql, _: self.select(sql),
            r"\(SELECT /\*": lambda sql, _: [
                row for one in sql[1:-1].split(") UNION ALL (") for row in self.select(one)
            ],
        }

    def _wait(self, _sql: str, arguments: tuple[str, float]) -> Rows:
        if self.faulty and self.server.random.random() < 0.03:
            return [(1,)]
        self.server.wait_for_executed(GtidSet.parse(arguments[0]))
        return [(0,)]

    def _identity(self, *_: object) -> Rows:
        self.identified += 1
        return [(self.identified, self.server.server_uuid())]

    def _keys(self, _sql: str, arguments: Any) -> Rows:
        return [(*of, name) for of in arguments[0] for name in KEYS[TableId(*of)]]

    def _indexes(self, _sql: str, arguments: Any) -> Rows:
        return [(*of, "PRIMARY", name, None, DIRECTIONS[name]) for of in arguments[0] for name in KEYS[TableId(*of)]]

    def _columns(self, _sql: str, arguments: Any) -> Rows:
        return [
            (*of, "", name, type_, type_, "NO", None, None, None, None)
            for of in arguments[0]
            for name, type_ in columns_of(TableId(*of), self.server.view[TableId(*of)].key_shape)
        ]

    def select(self, sql: str) -> Rows:
        for table, contents in self.server.view.items():
            if f"`{table.table}`" in sql:
                rows = [(*key, version, contents.shape) for key, version in contents.rows.items()]
                _SQLITE.execute(f"DELETE FROM {table.table}")
                _SQLITE.executemany(
                    f"INSERT INTO {table.table} VALUES ({', '.join('?' * (len(KEYS[table]) + 2))})", rows
                )
        return _SQLITE.execute(sql.replace("`db`.", "").replace("FORCE INDEX (`PRIMARY`)", "")).fetchall()


def read_chunk(connection: ServerConnection, shape: TableShape, tail: str, **_: object) -> list[Any]:
    """Replace `mysql.chunk_reader.read_chunk`, which reads MySQL's packets."""
    rng = connection.server.random
    if connection.faulty and rng.random() < 0.05:
        code = rng.choice((0, 3024, 1213, 1054))
        raise ChunkFailed("by chance") from (pymysql.err.OperationalError(code, "by chance") if code else None)
    rows = connection.select(f"SELECT {', '.join(column.name for column in shape.columns)} {tail}")
    keys = [row[: len(KEYS[shape.id])] for row in rows]
    if connection.poison in keys:
        raise ValueRefused("a row is poison")
    for _step in range(rng.randint(0, 2)):
        connection.server.step()
    return [
        pa.array([row[place] for row in rows], describe(column, shape.id).arrow)
        for place, column in enumerate(shape.columns)
    ]
