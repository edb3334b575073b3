"""``heartbeat.action.query``: the one statement that a job may write to MySQL, because its user has asked for it.

It runs on a thread and a connection of its own: the stream does not wait for a lock that it waits for. What it changes
comes back by the binlog like every change.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

import pymysql
from pymysql.connections import Connection

from incsnap.config.servers import MySqlSettings
from incsnap.errors import IncsnapError
from incsnap.mysql.session import connect, error_of, is_alive, query

log = logging.getLogger(__name__)

#: The server's own defaults, which the user's statement was written for: our sessions have others.
_AS_THE_SERVER_HAS_IT = "SET SESSION time_zone = @@GLOBAL.time_zone, sql_mode = @@GLOBAL.sql_mode"
#: Asked each time: what a replica executes on its own is a transaction that its source does not know. It is on wherever
#: super_read_only is.
_READ_ONLY = "SELECT @@GLOBAL.read_only"
#: No wait is for ever.
_NAP_SECONDS = 60.0
#: Seconds for which the end of a job waits for a statement under way.
_CLOSE_SECONDS = 1.0


class HeartbeatAction:
    """Executes ``statement`` after each ``ask``; where it is asked again meanwhile, the statement runs once more."""

    def __init__(self, settings: MySqlSettings, statement: str) -> None:
        self._settings = settings
        self._statement = statement
        self._connection: Connection[Any] | None = None
        self._due = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        #: Why the last one was not executed, "" where it was: the same reason is told once.
        self._trouble = ""

    def ask(self) -> None:
        """Returns at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="incsnap-heartbeat", daemon=True)
            self._thread.start()
        self._due.set()

    def close(self) -> None:
        self._closed = True
        self._due.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        while True:
            if not self._due.wait(_NAP_SECONDS):
                continue
            self._due.clear()
            if self._closed:
                break
            self._log_trouble(self._execute())
        if self._connection is not None and self._connection.open:
            self._connection.close()

    def _execute(self) -> str:
        """Executes the statement once. Returns why that failed; "" where it did not."""
        try:
            connection = self._open()
            if query(connection, _READ_ONLY)[0][0]:
                return "the server is read-only (read_only or super_read_only is ON)"
            with connection.cursor() as cursor:
                cursor.execute(self._statement)
        except (pymysql.err.MySQLError, OSError) as error:
            code, text = error_of(error)
            return f"{text} (error {code})"
        except IncsnapError as error:
            return error.message
        return ""

    def _open(self) -> Connection[Any]:
        if not is_alive(self._connection):
            self._connection = connect(self._settings)
            query(self._connection, _AS_THE_SERVER_HAS_IT)
        return self._connection

    def _log_trouble(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            log.warning(
                "heartbeat.action.query is not executed: %s. The job goes on, and tries again with each heartbeat",
                trouble,
            )
        elif self._trouble and not trouble:
            log.info("heartbeat.action.query is executed again")
        self._trouble = trouble
