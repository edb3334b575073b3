"""The planner's connection for questions: kept open, and moved to the server that the stream comes from."""

from __future__ import annotations

import logging
import time
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.table_rows import Charsets
from incsnap.config.servers import MySqlSettings
from incsnap.events import server_of
from incsnap.mysql import watermarks
from incsnap.mysql.catalog import charsets
from incsnap.mysql.session import connect, is_alive

log = logging.getLogger(__name__)

#: Seconds between two attempts to reach the server that the binlog comes from.
_REDIAL_SECONDS = 5.0


class QueryConnection:
    """``server_uuid``: of the server that is asked; "" before the first question."""

    def __init__(self, settings: MySqlSettings) -> None:
        self._settings = settings
        self._connection: Connection[Any] | None = None
        self._charsets: Charsets = ()
        self._redial_at = 0.0
        self.server_uuid = ""

    def open(self) -> Connection[Any]:
        """The connection, on which the server answers now. Raises ``ServerUnreachable``."""
        if is_alive(self._connection):
            return self._connection
        connection = connect(self._settings)
        self._charsets = tuple(sorted(charsets(connection).items()))
        self.server_uuid = watermarks.server_uuid(connection)
        self._connection = connection  # one that lost the server before it told who it is, is not kept
        return connection

    @property
    def charsets(self) -> Charsets:
        """The server's collations and their character sets, which are of its version and never change; asked once."""
        if not self._charsets:
            self.open()
        return self._charsets

    def follow(self, server_uuid: str) -> bool:
        """The stream comes from that server: a connection from before a failover is replaced with the next question.
        Was it one?

        The tail is left where it is: events must flow, chunks can wait (those read elsewhere are read again).
        """
        if server_of(server_uuid) in ("", self.server_uuid) or time.monotonic() < self._redial_at:
            return False
        self._redial_at = time.monotonic() + _REDIAL_SECONDS
        log.warning(
            "The binlog comes from server %s, queries go to %s: connecting again", server_uuid, self.server_uuid
        )
        self.close()
        return True

    def close(self) -> None:
        if self._connection is not None and self._connection.open:
            self._connection.close()
