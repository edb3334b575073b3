"""A writer of the tables of `key_kinds`. The GTIDs of its transactions name several origins."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from pymysql.connections import Connection

from incsnap.tables import TableId
from tests.support.key_kinds import KeyKind
from tests.support.mysql_versions import has_tags


def create(connection: Connection[Any], database: str, kind: KeyKind) -> TableId:
    """Create the table with all its keys, in version 0."""
    table = TableId(database, kind.name)
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        if kind.settings:
            cursor.execute(kind.settings)
        cursor.execute(f"CREATE TABLE {table.sql} (which INT NOT NULL, version BIGINT NOT NULL, {kind.columns})")
        rows = ", ".join(f"({which}, 0, {spellings[0]})" for which, spellings in enumerate(kind.values))
        cursor.execute(f"INSERT INTO {table.sql} (which, version, {kind.written}) VALUES {rows}")
    return table


class KeyWriter:
    """A thread that inserts, deletes, updates and re-keys rows until the `with` block ends.

    It leaves each third key alone: see `touches`. A transaction has a GTID of the server, a GTID with a tag, or a GTID
    of another server, at random.
    """

    def __init__(self, connect: Callable[[], Connection[Any]], tables: Sequence[tuple[KeyKind, TableId]]) -> None:
        #: Number of transactions by their origin.
        self.origins: Counter[str] = Counter()
        self._connection = connect()
        self._tables = tables
        self._random = Random(7)
        self._version = 0
        self._gone: dict[TableId, set[int]] = {table: set() for _, table in tables}
        self._other = str(uuid.uuid4())
        tagged = ("AUTOMATIC:backfill",) if has_tags(self._connection) else ()
        #: Three origins, or two if the server has no tags (before 8.3).
        self.possible_origins = ("AUTOMATIC", *tagged, self._other)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="key-writer", daemon=True)

    def __enter__(self) -> KeyWriter:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()
        self._connection.close()
        if self._error is not None:
            raise self._error

    @staticmethod
    def touches(which: int) -> bool:
        """Whether the writer changes the key with this number."""
        return which % 3 != 0

    def _run(self) -> None:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("SET time_zone = '+00:00'")
                # The rate is bounded, so that a slow machine is not overloaded.
                while not self._stop.wait(0.015):
                    self._transaction(cursor)
        except BaseException as error:  # noqa: BLE001 - raised where the block ends
            self._error = error

    def _transaction(self, cursor: Any) -> None:
        origin = self._random.choice(self.possible_origins)
        self.origins[origin] += 1
        number = f":{self.origins[origin]}" if origin == self._other else ""
        cursor.execute(f"SET gtid_next = '{origin}{number}'")
        cursor.execute("BEGIN")
        for _ in range(self._random.randrange(1, 5)):
            self._change(cursor, *self._random.choice(self._tables))
        cursor.execute("COMMIT")

    def _change(self, cursor: Any, kind: KeyKind, table: TableId) -> None:
        random, gone = self._random, self._gone[table]
        self._version += 1
        which = random.choice([which for which in range(len(kind.values)) if self.touches(which)])
        written = random.choice(kind.values[which])
        where = f"WHERE which = {which}"
        if which in gone:
            gone.remove(which)
            columns = f"which, version, {kind.written}"
            cursor.execute(f"INSERT INTO {table.sql} ({columns}) VALUES ({which}, {self._version}, {written})")
        elif random.random() < 0.25:
            gone.add(which)
            cursor.execute(f"DELETE FROM {table.sql} {where}")
        elif gone and random.random() < 0.3:
            # The row gets another key.
            other = random.choice(sorted(gone))
            gone.symmetric_difference_update({which, other})
            self._set(cursor, kind, table, f"which = {other}, ", random.choice(kind.values[other]), where)
        else:
            self._set(cursor, kind, table, "", written, where)

    def _set(self, cursor: Any, kind: KeyKind, table: TableId, first: str, written: str, where: str) -> None:
        pairs = zip(kind.written.split(", "), written.split(", "), strict=True)
        spelled = ", ".join(f"{name} = {value}" for name, value in pairs)
        cursor.execute(f"UPDATE {table.sql} SET {first}version = {self._version}, {spelled} {where}")
