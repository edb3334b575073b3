"""Facts that only the MySQL server knows: where its binlog ends, when it purges files, and how large tables are.

A thread of `planner_report` asks the server every few seconds on its own connection. No batch waits for this thread.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pymysql.connections import Connection

from incsnap.errors import IncsnapError, ServerUnreachable
from incsnap.events import BinlogPosition, file_number, server_of
from incsnap.monitoring.snapshot_view import TableFacts
from incsnap.mysql.session import named, query
from incsnap.mysql.watermarks import high_watermark, server_uuid
from incsnap.snapshot.context import Scan
from incsnap.tables import TableId, quote

#: Column types whose values show how far a scan has come among its keys.
_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year"})
#: Milliseconds that the SELECT of a table's least key may take. The SELECT reads the first entry of an index. It is
#: slow only if many deleted entries precede the first one.
_LEAST_MS = 1_000
#: Most tables to ask about. A snapshot of thousands of small tables has hundreds open, and each is a single chunk.
_TABLES = 64


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The state of the server at one moment."""

    uuid: str = ""  #: server_uuid; "" before the first answer
    file: str = ""  #: the last binlog file
    pos: int = 0  #: byte of `file` where the binlog ends
    #: names and bytes of the binlog files, in order; of the last file alone if the stream is in that file
    sizes: tuple[tuple[str, int], ...] = ()
    expire_seconds: int = 0  #: age at which the server purges a file; 0: never by itself
    ahead_ms: int = 0  #: how far the server's clock is ahead of ours
    tables: Mapping[TableId, TableFacts] = field(default_factory=dict)  #: tables that have chunks left to plan

    def bytes_behind(self, at: BinlogPosition) -> int | None:
        """Return the bytes of binlog between `at` and the end of the binlog.

        Return None if `at` belongs to another server's binlog, or if its file is gone.
        """
        if not self.file or server_of(at.server_uuid) != self.uuid:
            return None
        if at.reached(self.file, self.pos):
            return 0
        names = [name for name, _ in self.sizes]
        if at.file not in names or self.file not in names:
            return None
        between = self.sizes[names.index(at.file) : names.index(self.file)]
        return max(0, sum(size for _, size in between) + self.pos - at.pos)

    def purge_not_before_ms(self, file: str, last_change_ms: int) -> int | None:
        """Return the time (ms since 1970) before which the server does not purge `file`.

        A file is purged `expire_seconds` after its last change. `last_change_ms` is the last known change; 0 means
        unknown. The server never purges its last file. Return 0 if the server does not purge `file` by itself, and None
        if unknown.
        """
        if not self.file or not file:
            return None
        if not self.expire_seconds or file_number(file) >= file_number(self.file):
            return 0
        return last_change_ms + self.expire_seconds * 1000 if last_change_ms else None


def prepare(connection: Connection[Any]) -> None:
    """Set up a session for `ask`, once: make the server return fresh statistics, not statistics up to a day old."""
    query(connection, "SET SESSION information_schema_stats_expiry = 0")


def ask(
    connection: Connection[Any], known: Mapping[TableId, TableFacts], scans: Sequence[Scan], at: BinlogPosition
) -> ServerFacts:
    """Return the facts of the server. Raise IncsnapError if the server does not answer.

    Reuse the facts of tables in `known`. Ask only about tables that have chunks left to plan. `at` is the position that
    the stream has reached.
    """
    before = time.time()
    server_now = float(query(connection, "SELECT UNIX_TIMESTAMP(NOW(6))")[0][0])
    ahead = server_now - (before + time.time()) / 2
    file, pos = high_watermark(connection)
    # SHOW BINARY LOGS reads the size of every file, and a server may have thousands.
    sizes = ((file, pos),) if at.file == file else _sizes(connection)
    unplanned = [scan for scan in scans if scan.described and not scan.wholly_planned][:_TABLES]
    return ServerFacts(
        uuid=server_uuid(connection),
        file=file,
        pos=pos,
        sizes=sizes,
        expire_seconds=_expire_seconds(connection),
        ahead_ms=round(ahead * 1000),
        tables={scan.table: known.get(scan.table) or _facts(connection, scan) for scan in unplanned},
    )


def _sizes(connection: Connection[Any]) -> tuple[tuple[str, int], ...]:
    return tuple((str(row["Log_name"]), int(row["File_size"])) for row in named(connection, "SHOW BINARY LOGS"))


def _expire_seconds(connection: Connection[Any]) -> int:
    rows = query(connection, "SHOW GLOBAL VARIABLES LIKE 'binlog\\_expire\\_logs\\_%%'", ())
    variables = {str(name): str(value) for name, value in rows}
    # MySQL before 8.0.29 has no binlog_expire_logs_auto_purge and always purges.
    if variables.get("binlog_expire_logs_auto_purge", "ON") != "ON":
        return 0
    return int(variables.get("binlog_expire_logs_seconds", "0"))


def _facts(connection: Connection[Any], scan: Scan) -> TableFacts:
    """Return the statistics and the least key of a table, or empty facts if the table is locked or gone.

    The caller keeps the result, so the server is not asked about the table again. Raise ServerUnreachable if the
    connection is lost.
    """
    table = scan.table
    where = "WHERE table_schema = %s AND table_name = %s"
    names = (table.database, table.table)
    try:
        rows = query(connection, f"SELECT table_rows FROM information_schema.tables {where}", names)
        estimate = int(rows[0][0]) if rows and rows[0][0] is not None else None
        return TableFacts(estimate, _least(connection, scan))
    except ServerUnreachable:
        raise
    except IncsnapError:
        return TableFacts()


def _least(connection: Connection[Any], scan: Scan) -> str | None:
    """Return the least value of the first ordering column, or None if the table is empty or the column is no number."""
    table, column = scan.table, scan.columns[0]
    rows = query(
        connection,
        "SELECT data_type FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s AND column_name = %s",
        (table.database, table.table, column),
    )
    if not rows or str(rows[0][0]).lower() not in _NUMBERS or not scan.index:
        return None
    name = quote(column)
    least = query(
        connection,
        f"SELECT /*+ MAX_EXECUTION_TIME({_LEAST_MS}) */ {name} FROM {table.sql} FORCE INDEX ({quote(scan.index)})"
        f" ORDER BY {name} LIMIT 1",
    )
    return str(least[0][0]) if least and least[0][0] is not None else None
