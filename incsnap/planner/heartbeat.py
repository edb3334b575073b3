"""Heartbeats: a record each `heartbeat.interval.ms`, and `heartbeat.action.query` beside it.

A heartbeat is due when the interval has passed since the previous heartbeat, or since the start. Its record follows the
events of the batch that is planned then, in the batch's transactions. If there are no events, a batch is made for it.
Debezium looks at its clock only when an event of the binlog comes. So on an idle server its heartbeats wait for the
server's own.

`heartbeat.action.query` is the only statement of a job that may write to MySQL: its user asks for it. The statement
runs on a thread and a connection of its own, so the stream does not wait for a lock that the statement waits for. Its
changes come back by the binlog like all changes.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import Any

from pymysql.connections import Connection

from incsnap.checkpoint.control_records import ControlRecord
from incsnap.config.servers import MySqlSettings
from incsnap.config.settings import Settings
from incsnap.config.topics import heartbeat_topic
from incsnap.envelope.control_schemas import HEARTBEAT_VALUE
from incsnap.errors import IncsnapError
from incsnap.mysql.session import close, connect, is_alive, query
from incsnap.tasks.formats import struct_formats

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
        close(self._connection)

    def _execute(self) -> str:
        """Execute the statement once. Return why that failed; "" if it did not fail."""
        try:
            if not is_alive(self._connection):
                self._connection = connect(self._settings)
                query(self._connection, _AS_THE_SERVER_HAS_IT)
            if query(self._connection, _READ_ONLY)[0][0]:
                return "the server is read-only (read_only or super_read_only is ON)"
            query(self._connection, self._statement)
        except IncsnapError as error:
            return error.message
        return ""

    def _log_trouble(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            log.warning(
                "heartbeat.action.query is not executed: %s. The job goes on, and tries again with each heartbeat",
                trouble,
            )
        elif self._trouble and not trouble:
            log.info("heartbeat.action.query is executed again")
        self._trouble = trouble


class Heartbeat:
    """The heartbeats of one planner. With `heartbeat.interval.ms` 0 no heartbeat is ever due."""

    def __init__(self, settings: Settings) -> None:
        heartbeat = settings.heartbeat
        self._settings = settings
        self._interval = heartbeat.interval_ms / 1000 or math.inf
        self._action = HeartbeatAction(settings.mysql, heartbeat.action_query) if heartbeat.action_query else None
        self._due_at = time.monotonic() + self._interval

    def seconds_left(self) -> float:
        """Return the seconds until the next heartbeat is due; 0 if it is due."""
        return max(0.0, self._due_at - time.monotonic())

    def records(self) -> tuple[ControlRecord, ...]:
        """Return the record of the heartbeat that is due, once, and have the query executed.

        Return () if no heartbeat is due, or if a transform drops the record. Raise the schema registry's error if the
        registry refuses the schema.
        """
        if self.seconds_left():
            return ()
        self._due_at = time.monotonic() + self._interval
        if self._action is not None:
            self._action.ask()
        topic = heartbeat_topic(self._settings)
        if topic is None:
            return ()
        keys, values = struct_formats(self._settings)
        key, value = {"serverName": self._settings.topic_prefix}, {"ts_ms": time.time_ns() // 1_000_000}
        return (
            ControlRecord(
                topic.name,
                keys.struct(f"{topic.name}-key", topic.key_schema, topic.key(key)),
                values.struct(f"{topic.name}-value", HEARTBEAT_VALUE, value),
            ),
        )

    def close(self) -> None:
        """End the thread of the query."""
        if self._action is not None:
            self._action.close()
