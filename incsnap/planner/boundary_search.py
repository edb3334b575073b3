"""Looks for the ends of large chunks beside the stream: while somebody writes, no batch waits for such a question.

The end of a chunk of 50,000 rows is an index walk of 25 ms on a warm server and of 110 to 160 ms beside a stream, a
writer and a chunk reader on two cores. Asked by the batch that plans the chunk it was what every twentieth batch of a
snapshot took three times as long for. Any key of the table at any moment is a right answer, so it may come late, and
early: the ends of the chunks behind are looked for ahead, so that a batch that wants several finds them.
Whether a locked table can be read again is found out here too: nobody else need wait for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pymysql.connections import Connection

from incsnap.config.servers import MySqlSettings
from incsnap.envelope.column_rules import ColumnRules
from incsnap.errors import IncsnapError, shorten
from incsnap.mysql.session import close, connect, is_alive
from incsnap.planner.answers import Answers
from incsnap.snapshot.questions import Answer, BesideQuestion, Failed, NextBoundary, NotYet
from incsnap.tables import TableId

_log = logging.getLogger(__name__)

#: Seconds for one read of the socket: longer than any question may take, and short enough that a server which has
#: vanished is noticed while the snapshot can wait.
_READ_SECONDS = 10.0
#: Seconds that ``close`` waits for the thread, which may be in a statement.
_CLOSE_SECONDS = 1.0
#: Seconds without another attempt where no connection can be had, as where the user may have only so many.
_UNABLE_SECONDS = 30.0
#: Answers kept for tables that may not be asked about again.
_KEPT = 64
#: Boundaries of a table that are found ahead: more than a batch plans large chunks. Those of another size are for
#: nothing, and chunks grow twice.
_AHEAD = 4


_Subject = tuple[type[BesideQuestion], TableId]


def _subject(question: BesideQuestion) -> _Subject:
    return type(question), question.table


class BoundarySearch:
    """One thread with a connection of its own, both made for the first question. ``wake`` is called on that thread when
    there is an answer. ``close`` it."""

    def __init__(self, mysql: MySqlSettings, rules: ColumnRules, wake: Callable[[], None]) -> None:
        self._mysql = mysql
        self._rules = rules
        self._wake = wake
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        #: Of each table the question of each kind that was asked last.
        self._asked: dict[_Subject, BesideQuestion] = {}
        #: Of each table the boundary that nobody has asked for yet.
        self._ahead: dict[TableId, NextBoundary] = {}
        #: In the order in which they were found.
        self._answers: dict[BesideQuestion, Answer] = {}
        self._unable_until = 0.0
        #: Counts the servers that were asked.
        self._server = 0
        self._closed = False

    @property
    def is_able(self) -> bool:
        """May it be asked? Not for a while after it could not connect."""
        return time.monotonic() >= self._unable_until

    def __call__(self, question: BesideQuestion) -> Answer:
        """The answer, once; ``NotYet`` until there is one. Of a table the last question of each kind is looked into."""
        subject = _subject(question)
        with self._changed:
            if question in self._answers:
                answer = self._answers.pop(question)
                self._look_ahead(question, answer)
                return answer
            if self._asked.get(subject) != question:
                # Another course than the one that was looked ahead on.
                self._answers = {each: known for each, known in self._answers.items() if _subject(each) != subject}
                if isinstance(question, NextBoundary):
                    self._ahead.pop(question.table, None)
                self._asked[subject] = question
                self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="incsnap-boundaries", daemon=True)
                self._thread.start()
        return NotYet()

    def begin_again(self) -> None:
        """The server is another: what the one before said, or is asked, does not count."""
        with self._changed:
            self._server += 1
            self._answers.clear()
            self._ahead.clear()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        connection: Connection[Any] | None = None
        connected_to = -1
        while (asked := self._next()) is not None:
            question, server = asked
            try:
                if connection is None or connected_to != server or not is_alive(connection):
                    close(connection)
                    connection, connected_to = connect(self._mysql, read_timeout=_READ_SECONDS), server
            except IncsnapError as error:
                connection = None
                self._give_up(error)
                continue
            try:
                answer = Answers(connection, self._rules)(question)
            except Exception as error:  # noqa: BLE001 - the planner asks again; a thread that ends would never answer
                answer = Failed(shorten(error))
            self._answered(question, answer, server)
        close(connection)

    def _next(self) -> tuple[BesideQuestion, int] | None:
        """The question that is to be looked into, and the server's number, waiting for one; None when all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._asked or self._ahead)
            waiting = self._asked or self._ahead
            return None if self._closed else (next(iter(waiting.values())), self._server)

    def _answered(self, question: BesideQuestion, answer: Answer, server: int) -> None:
        subject = _subject(question)
        with self._changed:
            if server != self._server:
                return  # it is asked of the other
            is_asked = self._asked.get(subject) == question
            if is_asked:
                del self._asked[subject]
            elif self._ahead.get(question.table) == question:
                del self._ahead[question.table]
                if isinstance(answer, Failed):
                    return  # it may be another one by the time that somebody asks
            else:
                return
            self._answers[question] = answer
            self._look_ahead(question, answer)
            while len(self._answers) > _KEPT:
                del self._answers[next(iter(self._answers))]
        if is_asked:
            self._wake()

    def _look_ahead(self, question: BesideQuestion, answer: Answer) -> None:
        """Has the next boundary that is not known yet looked for: behind ``answer``, or behind those that were."""
        if not isinstance(question, NextBoundary) or question.table in self._ahead:
            return
        for _ in range(_AHEAD):
            if not isinstance(answer, tuple):
                return  # the table's end, or no answer
            question = replace(question, after=answer)
            if question not in self._answers:
                if self._asked.get(_subject(question)) != question:
                    self._ahead[question.table] = question
                    self._changed.notify_all()
                return
            answer = self._answers[question]

    def _give_up(self, error: IncsnapError) -> None:
        """Whoever asks must ask on a connection of his own."""
        _log.info("The ends of chunks are looked for by the stream itself, for %.0f s: %s", _UNABLE_SECONDS, error)
        with self._changed:
            self._asked.clear()
            self._ahead.clear()
            self._unable_until = time.monotonic() + _UNABLE_SECONDS
        self._wake()
