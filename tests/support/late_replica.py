"""A semi-synchronous replica that acknowledges late, so that each commit of its source takes that long.

https://dev.mysql.com/doc/refman/en/replication-semisync.html
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pymysql

from incsnap.mysql.driver_internals import drop, send_command, socket_of
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.waiting import wait_until

#: Options of such a source. It waits for the replica without a practical limit (an hour).
OPTIONS = [
    "--plugin-load-add=semisync_source.so",
    "--rpl-semi-sync-source-enabled=1",
    "--rpl-semi-sync-source-timeout=3600000",
    "--rpl-semi-sync-source-wait-no-replica=0",
]
_BINLOG_DUMP = 0x12
_MAGIC = 0xEF
#: The end position in an event's header.
_END_POS = struct.Struct("<13xI")


@contextmanager
def late_replica(source: MySqlAddress, seconds: float) -> Iterator[list[int]]:
    """Make each commit of the source take `seconds` until the block ends.

    Yield the positions that were acknowledged, to which each acknowledgement adds one.
    """
    acknowledged: list[int] = []
    connection: Any = connect(source)
    with connection.cursor() as cursor:
        cursor.execute("SET @source_binlog_checksum = 'NONE', @rpl_semi_sync_replica = 1")
        cursor.execute("SHOW BINARY LOG STATUS")
        ((file, pos, *_),) = cursor.fetchall()
    send_command(connection, _BINLOG_DUMP, struct.pack("<IHI", pos, 0, 4242) + file.encode())
    thread = threading.Thread(target=_acknowledge, args=(connection, file, seconds, acknowledged), daemon=True)
    thread.start()
    with connect(source) as asked, asked.cursor() as cursor:

        def is_waited_for() -> bool:
            cursor.execute("SHOW STATUS LIKE 'Rpl_semi_sync_source_clients'")
            return bool(cursor.fetchone()[1] == "1")

        wait_until(is_waited_for)
        try:
            yield acknowledged
        finally:
            # Without a replica no commit waits. Closing the socket would not wake the thread that reads from it.
            socket_of(connection).shutdown(socket.SHUT_RDWR)
            thread.join(30)
            drop(connection)


def _acknowledge(connection: Any, file: str, seconds: float, acknowledged: list[int]) -> None:
    with suppress(pymysql.err.MySQLError, OSError):
        while True:
            # PyMySQL's own reader fails here: after a replica's answer it considers packet numbers wrong.
            length = int.from_bytes(connection._read_bytes(4)[:3], "little")
            packet = connection._read_bytes(length)
            if packet[0] != 0 or packet[1] != _MAGIC or not packet[2]:
                continue  # an event for which the source does not wait
            ((end_pos),) = _END_POS.unpack_from(packet, 3)
            time.sleep(seconds)
            connection._next_seq_id = 0
            connection.write_packet(struct.pack("<BQ", _MAGIC, end_pos) + file.encode())
            acknowledged.append(end_pos)
