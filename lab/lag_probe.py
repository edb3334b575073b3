"""A measurement of the lag from outside: rows are committed regularly, and a consumer waits for their events."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.tables import TableId
from lab.listening import Follower

_EVERY_SECONDS = 0.25


class LagProbe:
    """A writer and a consumer that measure the lag until the `with` block ends.

    `table` has a column `id BIGINT`. The id of a row is the time of its INSERT in ms since 1970. `lags` has the seconds
    of each event that has arrived.
    """

    def __init__(self, connect: Callable[[], Connection[Cursor]], table: TableId, kafka: str, topic: str) -> None:
        self.lags: list[float] = []
        self._connect, self._table, self._kafka, self._topic = connect, table, kafka, topic
        self._waiting: dict[int, float] = {}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._beat, self._feel)]

    def __enter__(self) -> LagProbe:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def lag_seconds(self) -> float:
        """Return the lag of the newest event, or the age of the oldest event that is missing if that is larger."""
        last = self.lags[-1] if self.lags else 0.0
        # `list` copies in one step, because the other threads change the dict.
        return max(last, *(time.monotonic() - since for since in list(self._waiting.values())), 0.0)

    def _beat(self) -> None:
        with self._connect() as connection, connection.cursor() as cursor:
            while not self._stop.wait(_EVERY_SECONDS):
                now_ms = time.time_ns() // 1_000_000
                self._waiting[now_ms] = time.monotonic()
                cursor.execute(f"INSERT INTO {self._table.sql} VALUES (%s, 0)", (now_ms,))

    def _feel(self) -> None:
        with Follower(self._kafka, self._topic) as follower:
            while not self._stop.is_set():
                for message in follower.poll(0.1):
                    since = self._waiting.pop(json.loads(message.key() or b"{}").get("id"), None)
                    if since is not None:
                        self.lags.append(time.monotonic() - since)
