"""What only the server knows of how the job is doing: where its binlog ends, when it purges, how large tables are.

Asked every few seconds on a connection of its own, by a thread that no batch waits for.
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

#: Types whose values say how far a scan has come among its keys.
_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year"})
#: Milliseconds for the least key of a table: its index's first entry, unless many before it are deleted.
_LEAST_MS = 1_000
#: Tables that are asked about; of thousands of small ones hundreds are open, and each is one chunk.
_TABLES = 64


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """``file``, ``pos``: the end of the binlog of ``uuid``; ``sizes``: of its files in order. ``expire_seconds``: age
    at which a file is purged, 0 where the server does not by itself. ``ahead_ms``: by how much the server's clock is
    ahead of ours. ``tables``: of those being read."""

    uuid: str = ""
    file: str = ""
    pos: int = 0
    sizes: tuple[tuple[str, int], ...] = ()
    expire_seconds: int = 0
    ahead_ms: int = 0
    tables: Mapping[TableId, TableFacts] = field(default_factory=dict)

    def bytes_behind(self, at: BinlogPosition) -> int | None:
        """Bytes of binlog from ``at`` to the end; None where the two are of different binlogs, or a file is gone."""
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
        """The server does not purge the file before that moment: ``expire_seconds`` after its last change, of which
        ``last_change_ms`` is the last known one, and never while it is the last file. 0: it does not purge it by
        itself; None: not known."""
        if not self.file or not file:
            return None
        if not self.expire_seconds or file_number(file) >= file_number(self.file):
            return 0
        return last_change_ms + self.expire_seconds * 1000 if last_change_ms else None


def prepare(connection: Connection[Any]) -> None:
    """Prepares the session, once, for ``ask``: statistics are those of the engine, not what they were up to a day
    ago."""
    query(connection, "SET SESSION information_schema_stats_expiry = 0")


def ask(
    connection: Connection[Any], known: Mapping[TableId, TableFacts], scans: Sequence[Scan], at: BinlogPosition
) -> ServerFacts:
    """Tables in ``known`` are not asked about again, nor those of which no chunk is left to plan. ``at``: how far the
    stream is. Raises ``IncsnapError``."""
    before = time.time()
    server_now = float(query(connection, "SELECT UNIX_TIMESTAMP(NOW(6))")[0][0])
    ahead = server_now - (before + time.time()) / 2
    file, pos = high_watermark(connection)
    # A server may have thousands of files, and looks at each.
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
    # Servers before 8.0.29 have not the second one, and purge.
    if variables.get("binlog_expire_logs_auto_purge", "ON") != "ON":
        return 0
    return int(variables.get("binlog_expire_logs_seconds", "0"))


def _facts(connection: Connection[Any], scan: Scan) -> TableFacts:
    """What cannot be had (the table is locked, or gone) is not known, and not asked for again."""
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
