"""The planner's connection for questions. It is kept open, and follows the stream to another server."""

from __future__ import annotations

import logging
import time
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.table_rows import Charsets
from incsnap.config.servers import MySqlSettings
from incsnap.events import StreamPosition, server_of
from incsnap.mysql import watermarks
from incsnap.mysql.catalog import charsets
from incsnap.mysql.session import close, connect, is_alive

log = logging.getLogger(__name__)

#: Seconds between two attempts to reach the server that the binlog comes from.
_REDIAL_SECONDS = 5.0


class QueryConnection:
    """A connection that is opened again when it is lost.

    `server_uuid` is that of the server that is asked; "" before the first question.
    """

    def __init__(self, settings: MySqlSettings) -> None:
        self._settings = settings
        self._connection: Connection[Any] | None = None
        self._charsets: Charsets = ()
        self._redial_at = 0.0
        self.server_uuid = ""

    def open(self) -> Connection[Any]:
        """Return the connection, on which the server answers now. Raise ServerUnreachable if it cannot be opened."""
        if is_alive(self._connection):
            return self._connection
        connection = connect(self._settings)
        self._charsets = tuple(sorted(charsets(connection).items()))
        self.server_uuid = watermarks.server_uuid(connection)
        self._connection = connection  # kept only after the server has told its uuid
        return connection

    @property
    def charsets(self) -> Charsets:
        """Return the server's collations and their character sets.

        The server is asked once: they depend on its version and never change.
        """
        if not self._charsets:
            self.open()
        return self._charsets

    def leads_to(self, place: StreamPosition) -> bool:
        """Whether the server that is asked is the one from whose binlog `place` comes."""
        return server_of(place.server_uuid) == self.server_uuid

    def follow(self, server_uuid: str) -> bool:
        """Close the connection if the stream comes from the server `server_uuid` and the connection leads to another
        one.

        Return True if it was closed, which happens at most every five seconds. The next question opens it again. The
        tail is left where it is: events must flow, while chunks can wait. Chunks that were read on another server are
        read again.
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
        """Close the connection if it is open."""
        close(self._connection)
