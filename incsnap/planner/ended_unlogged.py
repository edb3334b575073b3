"""The prepared XA transactions that have ended on the server without an entry in its binlog (`sql_log_bin=0`).

The stream never brings their XA COMMIT or XA ROLLBACK. Without this module they would stay in every later offset, and
their files would stay beside the checkpoint for good.

A transaction is let go in three steps, and their order is the proof:

1. The stream has brought its XA PREPARE, and the server has executed it, before XA RECOVER is asked.
2. XA RECOVER does not list the transaction, so it has ended. The server writes a logged XA COMMIT or XA ROLLBACK to the
   binlog before it takes the transaction from that list. So a logged end lies before the end of the binlog. The end of
   the binlog is read after the answer. If it was read before, an XA COMMIT between the two would lie behind it.
3. The stream has passed that end, and no XA COMMIT or XA ROLLBACK of the transaction came. So the binlog has none.

Between "executed" and "listed" the server may hold a transaction back: a semi-synchronous commit waits for its replica.
Such a transaction is not listed yet, and has not ended. So two answers in a row must lack it, `_SECONDS_BETWEEN` apart.
If both come too early, its XA COMMIT is still not lost. The tail looks for the XA PREPARE in the binlog, as for any
transaction that it does not know.
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
    """The questions to the server. Each field asks one question when it is called."""

    executed: Callable[[], GtidSet]  #: transactions that are executed
    listed: Callable[[], Collection[str] | None]  #: names in XA RECOVER; None if the user may not ask
    binlog_end: Callable[[], tuple[str, int]]  #: file and position of the end of the binlog


@dataclass(frozen=True, slots=True)
class _Answer:
    """The newest answer of XA RECOVER that lacked a transaction for the second time in a row."""

    lacking: frozenset[_Name]  #: (name, GTID of XA PREPARE) of those that two answers in a row lacked
    log: str  #: the binlog that the stream came from at the time of the answer
    file: str  #: end of that binlog, read after the answer
    pos: int  #: byte position of that end in `file`


class EndedUnlogged:
    """The transactions of one planner that are known to have ended unlogged."""

    def __init__(self) -> None:
        self._answer: _Answer | None = None
        self._lacked: frozenset[_Name] = frozenset()
        self._ask_at = 0.0
        self._may_ask = True

    def ask_server(self, prepared: Sequence[PreparedXa], log: str, asked: XaRecovery, now: float) -> None:
        """Ask the server about the transactions `prepared`, if the last question was five seconds ago.

        `prepared` are prepared at the end of a batch that is done. `log` is the binlog that the stream comes from, by
        its server's UUID; the same server is asked. `now`: seconds of a monotonic clock.
        """
        if not prepared or not self._may_ask or now < self._ask_at:
            return
        self._ask_at = now + _SECONDS_BETWEEN
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
        """Return those of `prepared` that have ended unlogged. `prepared` are prepared at `end`, the end of a batch."""
        answer = self._answer
        if answer is None or end.server_uuid != answer.log or not end.reached(answer.file, answer.pos):
            return []
        return [each for each in prepared if (each.xid, each.gtid) in answer.lacking]
