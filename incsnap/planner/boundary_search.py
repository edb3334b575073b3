"""Looks into questions beside the stream, so that no batch waits for an answer that takes long.

The end of a chunk of 50,000 rows is an index walk of 25 ms on a warm server and of 110 to 160 ms beside a stream, a
writer and a chunk reader on two cores. Asked by the batch that plans the chunk it was what every twentieth batch of a
snapshot took three times as long for. Where no index has the order of a table it is a sort: a second for 2 million
rows.
Any key of the table at any moment is a right answer, so it may come late, and early: the ends of the chunks behind are
looked for ahead, so that a batch that wants several finds them.

What orders a table, and its maximum key, are asked for behind the low watermark of the batch that was the first to ask.
Here it is waited for as long as it takes: with commits that take 1.5 s each no batch would reach its own in time.
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
from incsnap.errors import ChunkFailed, IncsnapError, ServerUnreachable, shorten
from incsnap.gtid import GtidSet
from incsnap.mysql.session import close, connect, is_alive
from incsnap.mysql.watermarks import wait_until_executed
from incsnap.planner.answers import Answers
from incsnap.snapshot.questions import Answer, BesideQuestion, Describe, Failed, MaximumKey, NextBoundary, NotYet
from incsnap.tables import TableId

_log = logging.getLogger(__name__)

#: Seconds for one read of the socket: longer than any question may take, and short enough that a server which has
#: vanished is noticed while the snapshot can wait.
_READ_SECONDS = 70.0
#: Seconds that ``close`` waits for the thread, which may be in a statement.
_CLOSE_SECONDS = 1.0
#: Seconds without another attempt where no connection can be had, as where the user may have only so many.
_UNABLE_SECONDS = 30.0
#: Answers kept for tables that may not be asked about again.
_KEPT = 512
#: Boundaries of a table that are found ahead: more than a batch plans large chunks. Those of another size are for
#: nothing, and chunks grow twice.
_AHEAD = 4
#: Seconds of an answer from which on a table is asked about beside the stream.
SLOW_SECONDS = 0.05
#: Seconds to wait for a low watermark before other questions have their turn; before whoever asks is told.
_LOW_WATERMARK_SECONDS, _LATE_SECONDS = 0.2, 5.0


class BoundarySearch:
    """One thread with a connection of its own, both made for the first question. ``wake`` is called on that thread when
    there is an answer. ``close`` it."""

    def __init__(self, mysql: MySqlSettings, rules: ColumnRules, wake: Callable[[], None]) -> None:
        self._mysql = mysql
        self._rules = rules
        self._wake = wake
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        #: Since when somebody waits for the answer.
        self._asked: dict[BesideQuestion, float] = {}
        #: Questions that have a low watermark, as they were asked first: one that fails is asked again with a later
        #: low watermark, of which there is no need.
        self._first: dict[BesideQuestion, BesideQuestion] = {}
        #: Seconds of the last answer about a table.
        self._took: dict[TableId, float] = {}
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

    def is_asked(self, question: BesideQuestion) -> bool:
        """Whether the question is being looked into, or was, and nobody has taken the answer."""
        with self._changed:
            return question in self._asked or question in self._answers

    def is_slow(self, table: TableId) -> bool:
        """Whether the last answer about the table took so long that no batch should wait for the next one."""
        return self._took.get(table, 0.0) >= SLOW_SECONDS

    def took(self, table: TableId, seconds: float) -> None:
        """Note how long an answer about the table took."""
        with self._changed:
            self._took.pop(table, None)
            self._took[table] = seconds
            while len(self._took) > _KEPT:
                del self._took[next(iter(self._took))]

    def __call__(self, question: BesideQuestion) -> Answer:
        """Return the answer, once; ``NotYet`` until there is one."""
        with self._changed:
            if question in self._answers:
                answer = self._answers.pop(question)
                self._look_ahead(question, answer)
                return answer
            if question not in self._asked:
                if isinstance(question, NextBoundary):
                    # Another course than the one that was looked ahead on.
                    self._ahead.pop(question.table, None)
                self._asked[self._first.setdefault(question, question)] = time.monotonic()
                while len(self._first) > _KEPT:
                    del self._first[next(iter(self._first))]
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
                answer = self._answer(connection, question)
            except Exception as error:  # noqa: BLE001 - the planner asks again; a thread that ends would never answer
                answer = Failed(shorten(error))
            if not isinstance(answer, NotYet):
                self._answered(question, answer, server)
        close(connection)

    def _answer(self, connection: Connection[Any], question: BesideQuestion) -> Answer:
        """Return the answer; ``NotYet`` where the low watermark is not reached, and another question has its turn."""
        if isinstance(question, (Describe, MaximumKey)):
            try:
                wait_until_executed(connection, question.low_watermark, _LOW_WATERMARK_SECONDS)
            except ServerUnreachable:
                raise
            except ChunkFailed as late:
                with self._changed:
                    since = self._asked.pop(question, None)
                    if since is not None:
                        self._asked[question] = since
                if since is not None and time.monotonic() - since > _LATE_SECONDS:
                    return Failed(str(late))
                return NotYet()
            question = replace(question, low_watermark=GtidSet())
        began = time.monotonic()
        answer = Answers(connection, self._rules, is_patient=True)(question)
        self.took(question.table, time.monotonic() - began)
        return answer

    def _next(self) -> tuple[BesideQuestion, int] | None:
        """The question that is to be looked into, and the server's number, waiting for one; None when all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._asked or self._ahead)
            if self._closed:
                return None
            return next(iter(self._asked), None) or next(iter(self._ahead.values())), self._server

    def _answered(self, question: BesideQuestion, answer: Answer, server: int) -> None:
        with self._changed:
            if server != self._server:
                return  # it is asked of the other
            is_asked = self._asked.pop(question, None) is not None
            is_ahead = self._ahead.get(question.table) == question
            if is_ahead:
                del self._ahead[question.table]
            if not is_asked and (not is_ahead or isinstance(answer, Failed)):
                return  # what has failed ahead may be another answer by the time that somebody asks
            if not isinstance(answer, Failed):
                self._first.pop(question, None)
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
                if question not in self._asked:
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
