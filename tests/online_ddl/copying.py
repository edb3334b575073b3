"""The copy of a table's rows, for the tools whose statements are played. The key is the first column, a number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

import pymysql
from pymysql.cursors import Cursor

from incsnap.tables import TableId, quote
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.binlog_dump import charsets_of, events_since, rows_events
from tests.support.mysql_versions import end_of_binlog

_CHUNK = 5_000
#: Keys in one statement that replays changes.
_KEYS = 1_000
#: A round with at most `_FEW` keys is the last one without a lock. A fast writer may never let a round have so few.
_FEW, _ROUNDS = 1_000, 20
_DEADLOCK = 1213
#: `CHANGE a b ...`, in each of its spellings.
_CHANGE = re.compile(r"\bCHANGE\s+(?:COLUMN\s+)?`?(\w+)`?\s+`?(\w+)`?", re.IGNORECASE)


def columns_of(cursor: Cursor, table: str) -> list[str]:
    """Return the columns of a table, which is named as in SQL."""
    cursor.execute(f"SHOW COLUMNS FROM {table}")
    return [str(row[0]) for row in cursor.fetchall()]


def kept_columns(cursor: Cursor, table: str, copy: str, alter: str) -> dict[str, str]:
    """Return the names in `table` of all columns that the copy keeps, and their names in the copy."""
    renamed = dict(_CHANGE.findall(alter))
    there = columns_of(cursor, copy)
    names = {name: renamed.get(name, name) for name in columns_of(cursor, table)}
    return {name: new for name, new in names.items() if new in there}


def copy_rows(
    cursor: Cursor,
    table: str,
    copy: str,
    columns: Mapping[str, str],
    *,
    verb: str = "INSERT LOW_PRIORITY IGNORE",
    behind_chunk: Callable[[], None] = lambda: None,
) -> None:
    """Copy the rows of `table` in chunks of the key. `behind_chunk` is called behind each chunk."""
    key, selected, named = next(iter(columns)), _list(columns), _list(columns.values())
    cursor.execute(f"SELECT MAX({key}) FROM {table}")
    [(end,)] = cursor.fetchall()
    last = -(1 << 63)
    while last < end:
        chunk = f"SELECT {key} FROM {table} WHERE {key} > {last} ORDER BY 1 LIMIT {_CHUNK}"
        cursor.execute(f"SELECT COALESCE(MAX({key}), {end}) FROM ({chunk}) AS chunk")
        [(upper,)] = cursor.fetchall()
        until_done(
            cursor,
            f"{verb} INTO {copy} ({named}) SELECT {selected} FROM {table} FORCE INDEX(PRIMARY)"
            f" WHERE {key} > {last} AND {key} <= {upper} LOCK IN SHARE MODE",
        )
        last = upper
        behind_chunk()


class FollowedTable:
    """The changes of a table that its copy has not got yet. They are read from the binlog, as gh-ost and spirit do."""

    def __init__(
        self, mysql: MySqlAddress, cursor: Cursor, table: TableId, copy: str, columns: Mapping[str, str]
    ) -> None:
        self._mysql, self._cursor, self._table = mysql, cursor, table
        self._copy, self._columns = copy, columns
        with closing(connect(mysql)) as connection:
            self._charsets = charsets_of(connection)
            self._position = end_of_binlog(connection)

    def replay(self) -> int:
        """Bring the copy's rows to the present end of the binlog. Return the number of changed keys."""
        with closing(connect(self._mysql)) as connection:
            end = end_of_binlog(connection)
            events = rows_events(events_since(connection, self._position), self._table, self._charsets)
            keys = sorted(set() if events is None else set(events.decode().columns[0].to_pylist()))
        self._position = end
        key, copied = next(iter(self._columns.items()))
        for first in range(0, len(keys), _KEYS):
            chosen = ", ".join(map(str, keys[first : first + _KEYS]))
            until_done(self._cursor, f"DELETE FROM {self._copy} WHERE {copied} IN ({chosen})")
            until_done(
                self._cursor,
                f"REPLACE INTO {self._copy} ({_list(self._columns.values())}) SELECT {_list(self._columns)}"
                f" FROM {self._table.sql} WHERE {key} IN ({chosen})",
            )
        return len(keys)

    def replay_most(self) -> None:
        """Replay until a round had few keys, so that the lock of the cut-over is not held for long."""
        for _ in range(_ROUNDS):
            if self.replay() <= _FEW:
                return


def until_done(cursor: Cursor, statement: str) -> None:
    """Run the statement, and again after each deadlock with a writer, as the tools do."""
    while True:
        try:
            cursor.execute(statement)
            return
        except pymysql.OperationalError as error:
            if error.args[0] != _DEADLOCK:
                raise


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(quote, names))
