"""Prepared XA transactions that have ended on the server without a word in its binlog (`sql_log_bin=0`).

The stream never brings their XA COMMIT or XA ROLLBACK. Without this module they stay in every later offset, and their
files beside the checkpoint for good.

A transaction is let go in three steps, and their order is the proof:

1. The stream has brought its XA PREPARE, and it has executed, before XA RECOVER is asked.
2. XA RECOVER does not list it. So the transaction has ended. A logged XA COMMIT or XA ROLLBACK is written to the binlog
   before the server takes the transaction from that list: where there is one, it lies before the end of the binlog.
   That end is read after the answer. Read before it, an XA COMMIT between the two would lie behind that end.
3. The stream has passed that end, and no XA COMMIT or XA ROLLBACK of it came. So there is none.

Between "executed" and "listed" the server may hold a transaction back (a semi-synchronous commit that waits for its
replica). Such a one is not listed yet, and has not ended. So two answers in a row must lack it, ``_SECONDS_BETWEEN``
apart. If both come too early, its XA COMMIT is still not lost: the tail looks for the XA PREPARE in the binlog, as for
any that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from incsnap.events import PreparedXa, StreamPosition
from incsnap.gtid import GtidSet

#: Seconds from one question to the next. XA RECOVER reads a list in the server's memory, in a millisecond.
_SECONDS_BETWEEN = 5.0

_Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class XaRecovery:
    """What the server is asked. Each field is one question, asked when it is called."""

    executed: Callable[[], GtidSet]  #: transactions that are executed
    listed: Callable[[], Collection[str] | None]  #: names in XA RECOVER; None where the user may not ask
    binlog_end: Callable[[], tuple[str, int]]  #: file and position of the end of the binlog


@dataclass(frozen=True, slots=True)
class _Answer:
    lacking: frozenset[_Name]  #: (name, GTID of XA PREPARE) of those that two answers in a row lacked
    log: str  #: the binlog that the stream came from at the time of the answer
    file: str  #: end of that binlog, read after the answer
    pos: int


class EndedUnlogged:
    """The transactions of one planner that have ended unlogged, as far as that is known."""

    def __init__(self) -> None:
        self._answer: _Answer | None = None
        self._lacked: frozenset[_Name] = frozenset()
        self._next_look = 0.0
        self._may_ask = True

    def look(self, prepared: Sequence[PreparedXa], log: str, asked: XaRecovery, now: float) -> None:
        """Ask the server about ``prepared``, which are so at the end of a batch that is done, when it is time to.

        ``log``: the binlog that the stream comes from, which is that of the server that is asked. ``now``: seconds of a
        monotonic clock.
        """
        if not prepared or not self._may_ask or now < self._next_look:
            return
        self._next_look = now + _SECONDS_BETWEEN
        executed = asked.executed()
        listed = asked.listed()
        if listed is None:
            self._may_ask = False
            return
        lacking = frozenset(
            (each.xid, each.gtid)
            for each in prepared
            if each.xid not in listed and GtidSet.parse(each.gtid) <= executed
        )
        if lacking & self._lacked:
            self._answer = _Answer(lacking & self._lacked, log, *asked.binlog_end())
        self._lacked = lacking

    def among(self, prepared: Sequence[PreparedXa], end: StreamPosition) -> list[PreparedXa]:
        """Return those of ``prepared``, which are so at the end ``end`` of a batch, that have ended unlogged."""
        answer = self._answer
        if answer is None or end.server_uuid != answer.log or not end.reached(answer.file, answer.pos):
            return []
        return [each for each in prepared if (each.xid, each.gtid) in answer.lacking]
