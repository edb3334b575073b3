"""Changes of tables and rows on a real server, and what a tail reads of them, without Spark.

Each row has its own shape.
"""

from __future__ import annotations

import itertools
import os
import secrets
import time
from contextlib import closing
from typing import Any

import numpy as np
import pymysql

from incsnap.binlog.capture_options import CaptureOptions
from incsnap.binlog.protocol.row_images import DELETE, UPDATE, WRITE
from incsnap.binlog.slices import Slice
from incsnap.binlog.table_rows import table_rows
from incsnap.binlog.tail import Tail
from incsnap.ddl.table_definition import Definitions
from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql.catalog import charsets, database_charsets
from incsnap.mysql.row_definitions import row_definitions
from incsnap.planner.definition_history import KnownTables
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.mysql_versions import end_of_binlog
from tests.support.waiting import PATIENCE_SECONDS

Row = dict[str, Any]
#: A changed row: "c", "u" or "d"; the table's name; the row after the change, or before it for "d".
Change = tuple[str, str, Row]

MB = 1 << 20
_SERVER_IDS = itertools.count(secrets.randbelow(1 << 30) + 100_000)


class Play:
    """A session that changes rows.

    It notes each changed row as a SELECT shows it then, with its shape of that moment.
    """

    def __init__(self, address: MySqlAddress, database: str) -> None:
        self.address, self.database = address, database
        self.connection = self.connect()
        self.connection.select_db(database)
        self.charsets = tuple(sorted(charsets(self.connection).items()))
        self.expected: list[Change] = []
        #: Whether rows do not name their columns. Then they are read with the definitions that a job would know at that
        #: time.
        self._rows_lack_names = os.environ.get("INCSNAP_ROW_METADATA") == "MINIMAL"
        self._known: dict[tuple[str, int], KnownTables] = {}

    def connect(self) -> Any:
        return connect(self.address)

    def run(self, *statements: str) -> list[Row]:
        """Run the statements, and return the rows of the last one."""
        with self.connection.cursor(pymysql.cursors.DictCursor) as cursor:
            for statement in statements:
                cursor.execute(statement)
            return [dict(row) for row in cursor.fetchall()]

    def write(self, table: str, key: int, **values: Any) -> None:
        """Insert the row, or update it if it exists."""
        listed = {"id": key, **values}
        names = ", ".join(f"`{name}`" for name in listed)
        there = self.run(f"SELECT 1 FROM `{table}` WHERE id = {key}")
        with self.connection.cursor() as cursor:
            if there:
                assignments = ", ".join(f"`{name}` = %s" for name in values)
                cursor.execute(f"UPDATE `{table}` SET {assignments} WHERE id = {key}", [*values.values()])
            else:
                marks = ", ".join(["%s"] * len(listed))
                cursor.execute(f"INSERT INTO `{table}` ({names}) VALUES ({marks})", [*listed.values()])
            assert cursor.rowcount == 1, "a change that changes nothing writes no event"
        [row] = self.run(f"SELECT * FROM `{table}` WHERE id = {key}")
        self.expected.append(("u" if there else "c", table, row))

    def delete(self, table: str, key: int) -> None:
        """Delete the row."""
        [row] = self.run(f"SELECT * FROM `{table}` WHERE id = {key}")
        self.run(f"DELETE FROM `{table}` WHERE id = {key}")
        self.expected.append(("d", table, row))

    def here(self) -> StreamPosition:
        """Return the present end of the binlog. Note what a job would know here."""
        file, position = end_of_binlog(self.connection)
        [server] = self.run("SELECT @@GLOBAL.gtid_executed AS executed, @@server_uuid AS uuid")
        executed = GtidSet.parse(server["executed"])
        self._known[file, position] = self._known_now()
        return StreamPosition(executed, file, position, server_uuid=server["uuid"])

    def _known_now(self) -> KnownTables:
        """Return what a job would know here, if the server writes rows without names (`INCSNAP_ROW_METADATA`)."""
        if not self._rows_lack_names:
            return KnownTables()
        rows = self.run(
            f"SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{self.database}'"
        )
        tables = [TableId(self.database, row["name"]) for row in rows]
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_mode = ''")
            definitions, _ = row_definitions(connection, tables)
            return KnownTables(Definitions(definitions, database_charsets(connection)), complete=True)

    def _is_own(self, table: TableId) -> bool:
        return table.database == self.database

    def tail(self, start: StreamPosition) -> Tail:
        return Tail(
            self.connect,
            next(_SERVER_IDS),
            start,
            self._is_own,
            None,
            64 * MB,
            options=CaptureOptions(charsets=dict(self.charsets)),
        )

    def read(self, start: StreamPosition, end: StreamPosition, max_rows: int) -> tuple[list[Change], Touched]:
        """Return what a new tail reads from `start` to `end`, in batches of at most `max_rows` rows.

        The second value has each schema change, with the number of changes before it.
        """
        changes: list[Change] = []
        touched: list[tuple[int, SchemaChange]] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        known = self._known.get((start.file, start.pos), KnownTables())
        with self.tail(start) as tail:
            at = start
            while not (at.reached(end.file, end.pos) and end.delivered <= at.delivered):
                assert time.monotonic() < deadline
                batch = tail.advance(at, MB, max_rows, (end.file, end.pos), 1.0)
                history = [known]
                for change in batch.changes if self._rows_lack_names else ():
                    history.append(history[-1].after(change, self._is_own, self._is_own, 0))
                shapes = (history[rows.first].shape(rows.table) for rows in batch.unnamed)
                known = history[-1]
                definitions = tuple(shape for shape in shapes if shape is not None)
                for one in tail.slices(at, batch.end, 1):
                    changes += self.rows(one.with_definitions(definitions))
                touched += [(len(changes), change) for change in batch.changes]
                tail.forget(batch.end)
                at = batch.end
        return changes, touched

    def rows(self, slice_: Slice) -> list[Change]:
        """Return the changes of a slice, table by table, as the job's tasks do."""
        changes: list[Change] = []
        for group in table_rows(slice_, self.charsets):
            images = group.decode()
            names = [column.name for column in group.shape.columns]
            rows = [dict(zip(names, row, strict=True)) for row in zip(*map(_python, images.columns), strict=True)]
            kinds = images.kinds[images.event]
            is_before = np.isin(kinds, UPDATE) & (np.arange(len(rows)) % 2 == _parity(images.event))
            for row, kind, before in zip(rows, kinds.tolist(), is_before.tolist(), strict=True):
                if not before:
                    operation = "c" if kind in WRITE else "d" if kind in DELETE else "u"
                    changes.append((operation, group.shape.id.table, row))
        return changes


Touched = list[tuple[int, SchemaChange]]


def _parity(event: Any) -> Any:
    """Return for each image whether its event's first image has an even (0) or odd (1) index."""
    return np.searchsorted(event, event) % 2


def _python(column: Any) -> list[Any]:
    return list(column.to_pylist())


def by_table(changes: list[Change]) -> dict[str, list[Change]]:
    """Return the changes of each table."""
    tables: dict[str, list[Change]] = {}
    for change in changes:
        tables.setdefault(change[1], []).append(change)
    return tables
