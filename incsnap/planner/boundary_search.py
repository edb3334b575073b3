"""The search for answers of MySQL that take long. It runs beside the stream, so that no batch waits for such an answer.

The end of a chunk of 50,000 rows is an index walk. It takes 25 ms on a warm server, and 110 to 160 ms beside a stream,
a writer and a chunk reader on two cores. If the batch waited, every twentieth batch of a snapshot would take three
times as long. If no index has the order of a table, the server sorts the table: a second for 2 million rows.

Any key of the table at any moment is a right boundary, so an answer may come late or early. The boundaries of the next
chunks are searched ahead, so that a batch that needs several finds them. Sorts and lists of keys have a thread of their
own: each may take a minute, and all other questions would wait for it.

A question about the order of a table or its maximum key has a low watermark, that of the first batch that asked. The
search waits for this low watermark as long as it takes. With commits of 1.5 s each, no batch would reach its own low
watermark in time.

The search also tries whether a locked table can be read again. Nobody else waits for the lock.
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
from incsnap.planner.chosen_rows import ChosenRowsOf
from incsnap.snapshot.questions import Answer, BesideQuestion, Describe, Failed, MaximumKey, NextBoundary, NotYet
from incsnap.tables import TableId

_log = logging.getLogger(__name__)

#: Seconds for one read of the socket: longer than any question may take, and short enough to notice in time that a
#: server has vanished.
_READ_SECONDS = 70.0
#: Seconds that `close` waits for each thread, which may be in a statement.
_CLOSE_SECONDS = 1.0
#: Seconds until the next attempt after a connection failed, for example because the user may have no more connections.
_UNABLE_SECONDS = 30.0
#: Most answers that are kept. Some are about tables that nobody asks about again.
_KEPT = 512
#: Boundaries of a table that are searched ahead: more than a batch plans large chunks. Boundaries for another size of
#: chunk are useless, and chunks grow twice.
_AHEAD = 4
#: An answer that took so many seconds was slow. The next question about its table is asked beside the stream.
SLOW_SECONDS = 0.05
#: Seconds from which an answer is late. An index walk beside a busy stream takes up to 0.2 s.
PASSED_BY_SECONDS = 1.0
#: Seconds to wait for a low watermark: until other questions have their turn, and until the question fails.
_LOW_WATERMARK_SECONDS, _LATE_SECONDS = 0.2, 5.0


class BoundarySearch:
    """The search of one planner. `Answers` calls the object with a question, in each batch until the answer is there.

    The search has two threads, one of them for sorts and lists of keys. Each thread has its own connection, opened for
    its first question. `wake` is called on such a thread when there is an answer, so that the planner plans the next
    batch at once.
    """

    def __init__(
        self, mysql: MySqlSettings, rules: ColumnRules, wake: Callable[[], None], chosen: ChosenRowsOf | None = None
    ) -> None:
        self._mysql = mysql
        self._rules = rules
        self._chosen = chosen
        self._wake = wake
        self._changed = threading.Condition()
        #: Threads, by whether they are for sorts.
        self._threads: dict[bool, threading.Thread] = {}
        #: Question that somebody waits for -> since when.
        self._asked: dict[BesideQuestion, float] = {}
        #: Questions with a low watermark, as they were asked first. A failed question is asked again with a later low
        #: watermark, but the first one is enough.
        self._first: dict[BesideQuestion, BesideQuestion] = {}
        #: Seconds of the last answer about a table.
        self._took: dict[TableId, float] = {}
        #: Table -> the boundary that is searched ahead: nobody has asked for it yet.
        self._ahead: dict[TableId, NextBoundary] = {}
        #: Answers that nobody has taken, in the order in which they were found.
        self._answers: dict[BesideQuestion, Answer] = {}
        self._unable_until = self._sorts_unable_until = 0.0
        #: Number of the server that is asked; each failover adds 1.
        self._server = 0
        self._closed = False

    @property
    def is_able(self) -> bool:
        """Whether the search takes questions. It takes none for 30 seconds after it could not connect."""
        return time.monotonic() >= self._unable_until

    def is_asked(self, question: BesideQuestion) -> bool:
        """Whether the question is being answered, or has an answer that nobody has taken."""
        with self._changed:
            return question in self._asked or question in self._answers

    def is_slow(self, table: TableId) -> bool:
        """Whether the last answer about the table took so long that no batch should wait for the next one."""
        return self._took.get(table, 0.0) >= SLOW_SECONDS

    def took(self, table: TableId, seconds: float) -> None:
        """Note how long an answer about the table took. `is_slow` judges by this time."""
        with self._changed:
            self._took.pop(table, None)
            self._took[table] = seconds
            while len(self._took) > _KEPT:
                del self._took[next(iter(self._took))]

    def __call__(self, question: BesideQuestion) -> Answer:
        """Return the answer if the search has it, and forget the answer.

        Otherwise queue the question and return NotYet.
        """
        with self._changed:
            if question in self._answers:
                answer = self._answers.pop(question)
                self._look_ahead(question, answer)
                return answer
            if question not in self._asked:
                if isinstance(question, NextBoundary):
                    # This is not the boundary that was searched ahead.
                    self._ahead.pop(question.table, None)
                elif isinstance(question, Describe):
                    self._forget_earlier(question)
                self._asked[self._first.setdefault(question, question)] = time.monotonic()
                while len(self._first) > _KEPT:
                    del self._first[next(iter(self._first))]
                self._changed.notify_all()
            self._begin_thread(sorts=False)
            if self._is_for_sorts(question):
                self._begin_thread(sorts=True)
            return NotYet(is_late=time.monotonic() - self._asked[question] > PASSED_BY_SECONDS)

    def _forget_earlier(self, question: Describe) -> None:
        """Forget the same question of an earlier batch, which nobody waits for since a statement has asked it anew."""
        for each in list(self._asked):
            if isinstance(each, Describe) and replace(each, asked=question.asked, keys=question.keys) == question:
                del self._asked[each]

    def _begin_thread(self, *, sorts: bool) -> None:
        """Start the thread unless it runs."""
        if sorts not in self._threads:
            name = "incsnap-sorts" if sorts else "incsnap-boundaries"
            thread = self._threads[sorts] = threading.Thread(target=self._run, args=(sorts,), name=name, daemon=True)
            thread.start()

    def _is_for_sorts(self, question: BesideQuestion) -> bool:
        """Whether the question is for the thread of sorts.

        If that thread cannot connect, all questions are for the other one.
        """
        is_sort = isinstance(question, (MaximumKey, NextBoundary)) and not question.index
        is_list = isinstance(question, Describe) and question.lists_keys
        return (is_sort or is_list) and time.monotonic() >= self._sorts_unable_until

    def begin_again(self) -> None:
        """Forget the answers of the previous server, also those still to come. Open questions go to the new server."""
        with self._changed:
            self._server += 1
            self._answers.clear()
            self._ahead.clear()

    def close(self) -> None:
        """End the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads.values():
            thread.join(_CLOSE_SECONDS)

    def _run(self, sorts: bool) -> None:
        connection: Connection[Any] | None = None
        connected_to = -1
        while (asked := self._next(sorts)) is not None:
            question, server = asked
            try:
                if connection is None or connected_to != server or not is_alive(connection):
                    close(connection)
                    connection, connected_to = connect(self._mysql, read_timeout=_READ_SECONDS), server
            except IncsnapError as error:
                connection = None
                self._give_up(error, sorts)
                continue
            try:
                answer = self._answer(connection, question)
            except Exception as error:  # noqa: BLE001 - the planner asks again; a thread that ends would never answer
                answer = Failed(shorten(error))
            if not isinstance(answer, NotYet):
                self._answered(question, answer, server)
        close(connection)

    def _answer(self, connection: Connection[Any], question: BesideQuestion) -> Answer:
        """Return the answer; NotYet if the low watermark is not reached, so that another question has its turn."""
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
        answer = Answers(connection, self._rules, chosen=self._chosen, is_patient=True)(question)
        self.took(question.table, time.monotonic() - began)
        return answer

    def _next(self, sorts: bool) -> tuple[BesideQuestion, int] | None:
        """Return the thread's next question and the number of the server.

        Wait for a question. Return None after `close`.
        """

        def first() -> BesideQuestion | None:
            waiting = (*self._asked, *self._ahead.values())
            return next((each for each in waiting if self._is_for_sorts(each) == sorts), None)

        with self._changed:
            # Look again from time to time: no event tells when the thread of sorts may connect again.
            while not self._changed.wait_for(lambda: self._closed or first() is not None, _UNABLE_SECONDS):
                pass
            question = first()
            return None if self._closed or question is None else (question, self._server)

    def _answered(self, question: BesideQuestion, answer: Answer, server: int) -> None:
        """Keep the answer of server number `server`, and wake the planner if it waits for the answer."""
        with self._changed:
            if server != self._server:
                return  # the present server is asked again
            is_asked = self._asked.pop(question, None) is not None
            is_ahead = self._ahead.get(question.table) == question
            if is_ahead:
                del self._ahead[question.table]
            if not is_asked and (not is_ahead or isinstance(answer, Failed)):
                return  # a search ahead that failed may succeed by the time that somebody asks
            if not isinstance(answer, Failed):
                self._first.pop(question, None)
            self._answers[question] = answer
            self._look_ahead(question, answer)
            while len(self._answers) > _KEPT:
                del self._answers[next(iter(self._answers))]
        if is_asked:
            self._wake()

    def _look_ahead(self, question: BesideQuestion, answer: Answer) -> None:
        """Search ahead for the next boundary that is not known: the one after `answer`, or after those already
        searched."""
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

    def _give_up(self, error: IncsnapError, sorts: bool) -> None:
        """Leave the thread's questions to the other thread, or to the planner, which then asks on its own
        connection."""
        who = "together with those of other tables" if sorts else "on the planner's connection"
        _log.info("For %.0f s the boundaries of chunks are searched %s: %s", _UNABLE_SECONDS, who, error)
        with self._changed:
            if sorts:
                self._sorts_unable_until = time.monotonic() + _UNABLE_SECONDS
                self._changed.notify_all()
                return
            self._asked.clear()
            self._ahead.clear()
            self._unable_until = time.monotonic() + _UNABLE_SECONDS
        self._wake()
