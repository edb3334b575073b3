"""MySQL's answers to the engine's questions: what orders a table, where the table ends, where the next chunk ends.

The stream's next batch waits while questions are asked on the planner's own connection: at most `BATCH_SECONDS` for all
questions of a batch. A question that takes longer, or probably will, is asked beside the stream (`boundary_search`).
This concerns a table without an index for its order, a table whose last answer was slow, a locked table, and a low
watermark that is not reached.

`LookAhead` asks about many tables in a few statements. That takes about a tenth of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from pymysql.connections import Connection
from pymysql.constants import ER

from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.table_view import TableView
from incsnap.errors import ChunkFailed, IncsnapError, ServerUnreachable, StoreFailed
from incsnap.gtid import GtidSet
from incsnap.mysql.error_codes import CHANGED, IN_THE_WAY
from incsnap.mysql.session import QueryRefusedError, query
from incsnap.mysql.watermarks import wait_until_executed
from incsnap.planner.chosen_rows import ChosenRowsOf
from incsnap.planner.key_search import QUESTION_MS, KeySearch, bounded
from incsnap.planner.table_ordering import CatalogEntry, Ordering, TableRefused, check_types, ordering_of
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.chunk_query import condition_probe
from incsnap.snapshot.keys import Key, table_fingerprint
from incsnap.snapshot.questions import (
    Answer,
    BesideQuestion,
    Describe,
    Failed,
    KeyOrder,
    LookAhead,
    MaximumKey,
    NextBoundary,
    NotYet,
    Opened,
    Question,
    Refused,
)
from incsnap.tables import TableId

#: Seconds that a batch waits for all its questions.
BATCH_SECONDS = 0.05
#: Seconds that a batch waits for `LookAhead` while nobody writes, and so nobody waits for the batch.
QUIET_SECONDS = 0.5
#: Seconds. If less is left of the batch's time, no question is asked: a busy processor would make it run out of time.
_LEAST_SECONDS = 0.01
#: Milliseconds for opening a table beside the stream. They bound the whole statement, because the bound of a lock is at
#: least a second. Tables that are not locked wait behind a locked one.
_OPEN_MS = 200
#: Codes of errors that pass: somebody is in the way, the table was changed, the time ran out.
_PASSING = IN_THE_WAY | {ER.TABLE_DEF_CHANGED, ER.QUERY_TIMEOUT}
#: Codes of errors of a statement whose time was cut short for the batch. A wait for a metadata lock ends with one too.
_TOO_LONG = IN_THE_WAY | {ER.QUERY_TIMEOUT}
#: Most seconds to wait for a low watermark. After that the question is asked again later.
_LOW_WATERMARK_SECONDS = 0.2

#: The stream would stand still while the planner reads a list itself.
_NO_CONNECTION = "its list of keys is read on another connection to MySQL, and the server gives none now"
_NO_INDEX = "without an index that begins with {}, its rows cannot be put in order in time: create one"


class SearchBeside(Protocol):
    """The interface of `planner.boundary_search.BoundarySearch`, as far as `Answers` uses it.

    That class documents the methods.
    """

    @property
    def is_able(self) -> bool: ...
    def __call__(self, question: BesideQuestion) -> Answer: ...
    def is_asked(self, question: BesideQuestion) -> bool: ...
    def is_slow(self, table: TableId) -> bool: ...
    def took(self, table: TableId, seconds: float) -> None: ...


class _TakesLongError(Exception):
    """An error: the batch cannot wait for the answer."""


class Answers:
    """The function that answers the engine's questions for one batch: `drive` calls the object with each question.

    `connection` is the planner's. `beside` answers what the batch does not wait for; without it the batch waits for all
    answers. `is_missing`: whether a table that the server has just not found is missing at the batch's end, too.
    `chosen` finds rows that a signal chooses. `is_quiet`: nobody has written for a while, so a batch may wait
    `QUIET_SECONDS` for `LookAhead`. `is_patient`: no batch waits, so the server may sort a table for up to a minute.
    """

    def __init__(
        self,
        connection: Connection[Any],
        rules: ColumnRules,
        beside: SearchBeside | None = None,
        *,
        is_missing: Callable[[TableId], bool] = lambda _: True,
        chosen: ChosenRowsOf | None = None,
        is_quiet: bool = False,
        is_patient: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._beside = beside
        self._rules = rules
        self._is_missing = is_missing
        self._chosen = chosen
        self._clock = clock
        self._is_quiet = is_quiet
        #: Seconds that the batch may still wait; None if it waits for everything.
        self._left: float | None = None
        if beside is not None and beside.is_able:
            self._left = BATCH_SECONDS
        #: When the batch has waited long enough, by `clock`.
        self._until = 0.0
        self._keys = KeySearch(connection, self._within_ms, self._is_over, sorts=is_patient)
        self._reached: GtidSet | None = None
        self._late: ChunkFailed | None = None

    def __call__(self, question: Question) -> Answer:
        """Return the answer, or NotYet if the batch does not wait for it.

        A table that only a later statement has moved away or dropped has not ended: the answer is NotYet, and the
        engine asks again behind that statement. Raise ServerUnreachable if the connection is lost.
        """
        answer = self._asked(question)
        if isinstance(question, Describe) and isinstance(answer, Refused) and answer.status == notes.UNKNOWN_SCHEMA:
            return answer if self._is_missing(question.table) else NotYet(is_late=True)
        return answer

    def _asked(self, question: Question) -> Answer:
        """Return the answer, or NotYet if the batch does not wait for it. Raise as `__call__`."""
        if self._beside is not None and self._left is None and isinstance(question, Describe) and question.lists_keys:
            return Failed(_NO_CONNECTION)
        if self._beside is None or self._left is None:
            return self._answered(question)
        if isinstance(question, LookAhead):
            self._left = QUIET_SECONDS if self._is_quiet else self._left
            with suppress(_TakesLongError):  # then each table is asked about by itself
                self._timed(question)
            self._left = min(self._left, BATCH_SECONDS)
            return None
        if self._is_for_beside(question, self._beside):
            return self._beside(question)
        began = self._clock()
        try:
            return self._timed(question)
        except _TakesLongError:
            return self._beside(question)
        finally:
            self._beside.took(question.table, self._clock() - began)

    def _is_for_beside(self, question: BesideQuestion, beside: SearchBeside) -> bool:
        """Whether the question is not even tried in the batch's time, but asked beside the stream at once."""
        match question:
            case Opened() | NextBoundary(beside=True):
                return True
            case Describe(lists_keys=True):
                return True
            case MaximumKey(index="") | NextBoundary(index="") if not self._keys.is_known(question):
                return True
        if beside.is_asked(question):
            return True
        return not self._keys.is_known(question) and (
            beside.is_slow(question.table) or (self._left or 0.0) < _LEAST_SECONDS
        )

    def _timed(self, question: Question) -> Answer:
        """Answer on the planner's connection, and subtract the time from what the batch may still wait."""
        began = self._clock()
        self._until = began + (self._left or 0.0)
        try:
            return self._answered(question)
        finally:
            self._left = (self._left or 0.0) - (self._clock() - began)

    def _answered(self, question: Question) -> Answer:
        """Answer on the planner's connection. An error becomes Refused or Failed.

        Raise ServerUnreachable if the connection is lost, and _TakesLongError if the batch cannot wait.
        """
        try:
            return self._answer(question)
        except ServerUnreachable:
            raise
        except TableRefused as refused:
            return Refused(refused.status, refused.reason)
        except QueryRefusedError as error:
            if self._left is not None and error.code in _TOO_LONG:
                raise _TakesLongError from error
            match question:
                case MaximumKey(index="") | NextBoundary(index="") if error.code == ER.QUERY_TIMEOUT:
                    return Failed(_NO_INDEX.format(", ".join(question.columns)), permanent=True)
            return Failed(error.message, permanent=error.code not in _PASSING | CHANGED)
        except (ChunkFailed, StoreFailed, KeyError, ValueError) as error:
            # ValueError: the key's type has changed since.
            return Failed(str(error))
        except IncsnapError as error:
            return Failed(error.message, permanent=True)

    def _answer(self, question: Question) -> Answer:
        match question:
            case LookAhead():
                self._look_ahead(question)
                return None
            case Describe():
                self._wait(question.low_watermark)
                return self._described(question)
            case MaximumKey():
                self._wait(question.low_watermark)
                return self._keys.key(question)
            case Opened():
                self._open(question.table)
                return None
            case NextBoundary():
                return self._keys.key(question)

    def _within_ms(self, most_ms: int) -> int:
        """Return the milliseconds for one statement: the rest of the batch's time, or `most_ms` if no batch waits."""
        if self._left is None:
            return most_ms
        return max(1, min(most_ms, round((self._until - self._clock()) * 1000)))

    def _is_over(self) -> bool:
        """Whether the batch has waited long enough for the question under way."""
        return self._left is not None and self._clock() > self._until

    def _described(self, question: Describe) -> KeyOrder:
        """Return what orders the table.

        Raise TableRefused if the table cannot be read. Raise QueryRefusedError if its condition cannot be tried now.
        """
        entry = self._keys.entry(question.table)
        if entry is None:
            raise TableRefused(notes.UNKNOWN_SCHEMA, "the table does not exist, or the user may not see it")
        view = check_types(entry, self._rules)
        if question.condition:
            self._try_condition(question.table, question.condition)
        order, first, last, keys, count = self._chosen_order(question, entry, view)
        names = self._keys.remember_order(question.table, order.columns)
        identity = [entry.shape.columns[place] for place in view.identity]
        key = [field.column for field in view.key]
        fingerprint = table_fingerprint(order.columns, identity, key, entry.collations, order.descending)
        return KeyOrder(
            names,
            fingerprint,
            order.index,
            order.descending,
            is_identified=bool(view.identity),
            first=first,
            last=last,
            keys=keys,
            count=count,
        )

    def _chosen_order(
        self, question: Describe, entry: CatalogEntry, view: TableView
    ) -> tuple[Ordering, Key | None, Key | None, str, int]:
        """Return the order of the rows that the signal chooses, their limits, and their list with its number of keys.

        Raise as `_described`. Raise ChunkFailed or StoreFailed if a list's source does not answer now.
        """
        chosen = question.chosen
        if chosen is None or self._chosen is None:
            return ordering_of(entry, view, question.surrogate), None, None, "", 0
        if question.lists_keys:
            order, keys, count = self._chosen.listed(self._connection, entry, chosen, question.keys)
            return order, None, None, keys, count
        order, first, last = self._chosen.range(entry, view, chosen, question.surrogate)
        return order, first, last, "", 0

    def _try_condition(self, table: TableId, condition: str) -> None:
        """Raise TableRefused if the server does not understand the condition, or QueryRefusedError if it cannot be
        tried now."""
        try:
            query(self._connection, bounded(condition_probe(table, condition), self._within_ms(QUESTION_MS)))
        except QueryRefusedError as error:
            if error.code in _PASSING:
                raise
            raise TableRefused(notes.SQL_EXCEPTION, f"its additional condition is refused: {error.message}") from None
        except UnicodeError as error:
            raise TableRefused(notes.SQL_EXCEPTION, f"its additional condition is no text: {error}") from None

    def _wait(self, low_watermark: GtidSet) -> None:
        """Wait for the low watermark, once in a planning.

        A low watermark that was reached stays reached. If it was not reached, the batch has waited long enough. Then
        raise _TakesLongError, or ChunkFailed if no batch waits.
        """
        if low_watermark == self._reached:
            return
        if self._late is None:
            try:
                seconds = self._within_ms(round(_LOW_WATERMARK_SECONDS * 1000)) / 1000
                wait_until_executed(self._connection, low_watermark, seconds)
            except ServerUnreachable:
                raise
            except ChunkFailed as error:
                self._late = error
        if self._late is not None:
            if self._left is not None:
                raise _TakesLongError
            raise self._late
        self._reached = low_watermark

    def _open(self, table: TableId) -> None:
        """Raise ChunkFailed if the table is locked.

        Any other error comes again with the next question about the table.
        """
        try:
            query(self._connection, bounded(condition_probe(table, ""), _OPEN_MS))
        except QueryRefusedError as error:
            if error.code in _PASSING:
                late = f"{table} is locked, or takes longer than {_OPEN_MS} ms to be opened: {error.message}"
                raise ChunkFailed(late) from None

    def _look_ahead(self, coming: LookAhead) -> None:
        """Cache the answers about many tables. A table without an answer here is asked about by itself."""
        self._wait(coming.low_watermark)
        self._keys.look_up(list(dict.fromkeys(each.table for each in coming.collections)))
        # A table with a condition or with chosen rows is described later, when its turn has come.
        whole = [each for each in coming.collections if each.chosen is None]
        described = (Describe(each.table, each.surrogate, "", coming.low_watermark) for each in whole)
        maxima = [maximum for question in described if (maximum := self._maximum_of(question)) is not None]
        self._keys.find_together(maxima, coming.rows)

    def _maximum_of(self, question: Describe) -> MaximumKey | None:
        """Return the question for the last key of the table that `question` describes.

        Return None if the table does not exist, cannot be read, or has no index for its order. Without an index each
        statement may sort the table. Such a statement needs all its time for itself.
        """
        if self._keys.cached_entry(question.table) is None:
            return None
        try:
            order = self._described(question)
        except TableRefused:
            return None
        maximum = MaximumKey(question.table, order.columns, order.index, question.low_watermark, order.descending)
        return maximum if order.index else None
