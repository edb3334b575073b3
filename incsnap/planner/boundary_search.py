"""Looks for the ends of large chunks beside the stream: while somebody writes, no batch waits for such a question.

The end of a chunk of 50,000 rows is an index walk of 25 ms on a warm server and of 110 to 160 ms beside a stream, a
writer and a chunk reader on two cores. Asked by the batch that plans the chunk it was what every twentieth batch of a
snapshot took three times as long for. Any key of the table at any moment is a right answer, so it may come late.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pymysql.connections import Connection

from incsnap.config.settings import MySqlSettings
from incsnap.envelope.column_rules import ColumnRules
from incsnap.errors import IncsnapError, shorten
from incsnap.mysql.session import connect, is_alive
from incsnap.planner.answers import Answers
from incsnap.snapshot.questions import Answer, Failed, NextBoundary, NotYet

#: Seconds for one read of the socket: longer than any question may take, and short enough that a server which has
#: vanished is noticed while the snapshot can wait.
_READ_SECONDS = 10.0
#: Seconds that ``close`` waits for the thread, which may be in a statement.
_CLOSE_SECONDS = 1.0


class BoundarySearch:
    """One thread with a connection of its own, both made for the first question. ``wake`` is called on that thread when
    there is an answer. ``close`` it."""

    def __init__(self, mysql: MySqlSettings, rules: ColumnRules, wake: Callable[[], None]) -> None:
        self._mysql = mysql
        self._rules = rules
        self._wake = wake
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wanted: NextBoundary | None = None
        self._answered: tuple[NextBoundary, Answer] | None = None
        self._closed = False

    def __call__(self, question: NextBoundary) -> Answer:
        """The answer, once; ``NotYet`` until there is one. Only the question asked last is looked into."""
        with self._changed:
            if self._answered is not None and self._answered[0] == question:
                answer, self._answered, self._wanted = self._answered[1], None, None
                return answer
            if self._wanted != question:
                self._wanted = question
                self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="incsnap-boundaries", daemon=True)
                self._thread.start()
        return NotYet()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        connection: Connection[Any] | None = None
        while (question := self._next()) is not None:
            try:
                if connection is None or not is_alive(connection):
                    connection = connect(self._mysql, read_timeout=_READ_SECONDS)
                answer = Answers(connection, self._rules)(question)
            except IncsnapError as error:
                answer = Failed(error.message)
            except Exception as error:  # noqa: BLE001 - the planner asks again; a thread that ends would never answer
                answer = Failed(shorten(error))
            with self._changed:
                self._answered = question, answer
            self._wake()
        if connection is not None and connection.open:
            with suppress(Exception):  # a socket that is gone may complain
                connection.close()

    def _next(self) -> NextBoundary | None:
        """The question that is to be looked into, waiting for one; None when all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._is_unanswered())
            return None if self._closed else self._wanted

    def _is_unanswered(self) -> bool:
        return self._wanted is not None and (self._answered is None or self._answered[0] != self._wanted)
