"""The binlog files of a server, by SQL."""

from __future__ import annotations

from typing import Any

from incsnap.gtid import GtidSet

#: Bytes of an encrypted file's header. SHOW BINARY LOGS counts them; positions of events do not.
_HEADER_BYTES = 512


def log_files(cursor: Any) -> list[tuple[str, int]]:
    """Return (name, end) of each binlog file, the oldest first. `end` is the position behind the file's last event.

    The user of `cursor` needs REPLICATION CLIENT. PyMySQL's errors pass through.
    """
    cursor.execute("SHOW BINARY LOGS")
    return [(str(row[0]), int(row[1]) - _HEADER_BYTES * (row[2:3] == ("Yes",))) for row in cursor.fetchall()]


def before_file(cursor: Any, file: str) -> GtidSet:
    """Return the transactions in earlier files than `file`, as the file's own header names them.

    The user of `cursor` needs REPLICATION SLAVE. PyMySQL's errors pass through.
    """
    cursor.execute("SHOW BINLOG EVENTS IN %s LIMIT 3", (file,))
    return next(GtidSet.parse(str(row[5])) for row in cursor.fetchall() if row[2] == "Previous_gtids")
