"""The load of a client that commits single-row updates as fast as the server allows."""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Callable

from pymysql.connections import Connection
from pymysql.cursors import Cursor

_ROWS = 100


class SourceLoad:
    """A thread that updates rows of `table` until the `with` block ends."""

    def __init__(self, connect: Callable[[], Connection[Cursor]], table: str) -> None:
        self._connect, self._table = connect, table
        self._commits: list[float] = []
        self._end = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="load", daemon=True)

    def __enter__(self) -> SourceLoad:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._thread.join()

    def rate(self, since: float, until: float) -> float:
        """Return commits a second between two moments of `time.monotonic()`.

        Raise the error that ended the thread, if any.
        """
        if self._error is not None:
            raise self._error
        count = bisect.bisect(self._commits, until) - bisect.bisect(self._commits, since)
        return count / (until - since)

    def _work(self) -> None:
        number = 0
        try:
            with self._connect() as connection, connection.cursor() as cursor:
                while not self._end.is_set():
                    number += 1
                    cursor.execute(f"UPDATE {self._table} SET qty = %s WHERE id = %s", (number, 1 + number % _ROWS))
                    self._commits.append(time.monotonic())
        except Exception as error:  # noqa: BLE001 - raised by the thread that asks
            self._error = error
