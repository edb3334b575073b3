"""The execution of `heartbeat.action.query`, the only statement of a job that may write to MySQL: its user asks for it.

The statement runs on a thread and a connection of its own, so the stream does not wait for a lock that the statement
waits for. Its changes come back by the binlog like all changes.
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

#: The server's own defaults, which the user's statement was written for. Sessions of incsnap have others.
_AS_THE_SERVER_HAS_IT = "SET SESSION time_zone = @@GLOBAL.time_zone, sql_mode = @@GLOBAL.sql_mode"
#: Asked each time, because a replica must not execute the statement: it would be a transaction that its source does not
#: know. If super_read_only is ON, read_only is ON too.
_READ_ONLY = "SELECT @@GLOBAL.read_only"
#: Most seconds of one wait, so that no wait is without an end.
_NAP_SECONDS = 60.0
#: Seconds that `close` waits for a statement under way.
_CLOSE_SECONDS = 1.0


class HeartbeatAction:
    """A thread that executes `statement` after each `ask`.

    If it is asked again meanwhile, the statement runs once more.
    """

    def __init__(self, settings: MySqlSettings, statement: str) -> None:
        self._settings = settings
        self._statement = statement
        self._connection: Connection[Any] | None = None
        self._due = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        #: Why the last execution failed; "" if it did not. The same reason is logged once.
        self._trouble = ""

    def ask(self) -> None:
        """Request an execution, and return at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="incsnap-heartbeat", daemon=True)
            self._thread.start()
        self._due.set()

    def close(self) -> None:
        """End the thread. Wait a second for it at most."""
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
        """Execute the statement once. Return why that failed; "" if it did not fail."""
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
