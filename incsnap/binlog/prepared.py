"""Events of prepared XA transactions, from XA PREPARE on until XA COMMIT or XA ROLLBACK.

Their rows become visible with XA COMMIT, minutes or days later, or never; the server does not send them again. So
they are held here: in memory up to a bound, beyond it in a ``PartStore``. What is still prepared at the end of a batch
is put there in any case (``keep``), before the offset names it.

Read and filled by the tail's thread, kept by the planner's: a lock around each step.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from incsnap.binlog.protocol.frames import Longs
from incsnap.events import PreparedXa

#: XaTransaction in memory, of all prepared transactions together.
MEMORY_BYTES = 32 << 20


class XaEvents(NamedTuple):
    """Events in binlog order, joined, header and body without checksum: event i is
    ``payload[offsets[i]:offsets[i + 1]]`` and stood at ``positions[i]`` of its file."""

    payload: bytes
    offsets: Longs
    positions: Longs


class PartStore(Protocol):
    """Where events are put so that they survive the process."""

    def put(self, parts: Sequence[XaEvents]) -> list[str]:
        """On the disk when it returns; the name of each."""

    def get(self, name: str) -> XaEvents:
        """An IncsnapError where it is gone."""

    def drop(self, names: Sequence[str]) -> None:
        """Parts that no offset has named."""


@dataclass(slots=True)
class _Part:
    """In memory, in the store, or both."""

    events: XaEvents | None
    name: str = ""

    @property
    def memory(self) -> int:
        return len(self.events.payload) if self.events is not None else 0


@dataclass(slots=True, eq=False)
class XaTransaction:
    """An XA transaction and its events so far; ``file`` and ``captured`` as in ``PreparedXa``."""

    xid: str
    gtid: str
    file: str = ""
    parts: list[_Part] = field(default_factory=list)
    captured: str = ""

    @property
    def memory(self) -> int:
        return sum(part.memory for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts if part.name)


class XaMark(NamedTuple):
    """XA PREPARE (``prepared``), or XA COMMIT and XA ROLLBACK, as they lie in the stream."""

    transaction: XaTransaction
    prepared: bool


class NotPrepared(Exception):
    """The log commits ``xid`` in transaction ``gtid`` at ``place``, and its rows were not seen."""

    def __init__(self, xid: str, gtid: str, place: str) -> None:
        super().__init__(f"{place}: {gtid} is the XA COMMIT of {xid}, whose XA PREPARE came before all that was read")
        self.xid = xid
        self.gtid = gtid
        self.place = place


class PreparedTransactions:
    """All that are prepared where the stream is read now, and the one that is being read.

    ``store``: None keeps all in memory, where nothing need survive. ``known``: those of the offset to begin at.
    ``captured`` tells the present choice of tables: of a known one that was picked out by another choice nothing is
    taken for granted, it counts as not known. ``only``: of others nothing is held, and it is no error where one that
    was prepared before all that is read is committed (None: of all of them). ``sought``: names of those that were
    prepared before all that is read and are looked for.
    """

    def __init__(
        self,
        store: PartStore | None = None,
        known: Iterable[PreparedXa] = (),
        captured: str = "",
        only: Collection[str] | None = None,
        memory_bytes: int = MEMORY_BYTES,
        sought: Iterable[str] = (),
    ) -> None:
        self._store = store
        self._captured = captured
        self._only = only
        self._bound = memory_bytes
        self._lock = threading.Lock()
        self._transactions = {
            each.xid: XaTransaction(
                each.xid, each.gtid, each.file, [_Part(None, name) for name in each.parts], each.captured
            )
            for each in known
            if each.captured in ("", captured)
        }
        self._open: XaTransaction | None = None
        self._memory = 0
        #: Names of which the stream has brought nothing yet; and what was found under such names.
        self._sought = set(sought) - self._transactions.keys()
        self._taken: dict[str, XaTransaction] = {}

    # -- the tail's thread

    def sibling(self, only: Collection[str]) -> PreparedTransactions:
        """Knows nothing yet and holds none but those; what it holds can be handed over (``adopt``)."""
        return PreparedTransactions(self._store, (), self._captured, only, self._bound)

    def begin(self, xid: str, gtid: str, file: str) -> None:
        """Begin a transaction: XA START. A former one of the same name has ended.

        One that was begun and not prepared is dropped: its connection broke, and it comes again.
        """
        self.drop_open()
        with self._lock:
            self._sought.discard(xid)
            self._open = XaTransaction(xid, gtid, file)

    def add(self, events: XaEvents, *, passed_over: bool) -> None:
        """More of the transaction that was begun; ``passed_over``: events of other tables stood between them."""
        with self._lock:
            assert self._open is not None
            if passed_over:
                self._open.captured = self._captured
            if len(events.positions) and (self._only is None or self._open.xid in self._only):
                self._open.parts.append(_Part(events))
                self._memory += len(events.payload)
                self._make_room()

    def drop_open(self) -> None:
        with self._lock:
            if self._open is not None:
                self._memory -= self._open.memory
                if self._store is not None and self._open.names:
                    self._store.drop(self._open.names)
            self._open = None

    def prepare(self) -> XaTransaction:
        """Prepare the transaction that was begun. A name may be used again after its end, of which the binlog need not
        tell."""
        with self._lock:
            assert self._open is not None
            transaction, self._open = self._open, None
            self._replace(transaction)
            return transaction

    def commit_open(self) -> XaTransaction:
        """XA COMMIT ... ONE PHASE of the transaction that was begun: it was never prepared."""
        transaction = self.prepare()
        self.finish(transaction)
        return transaction

    def of(self, xid: str, gtid: str, place: str) -> XaTransaction:
        """What XA COMMIT makes visible. ``NotPrepared`` where that was never seen."""
        transaction = self._transactions.get(xid)
        if transaction is not None:
            return transaction
        if self._only is None:
            raise NotPrepared(xid, gtid, place)
        return XaTransaction(xid, "")

    def adopt(self, transaction: XaTransaction) -> None:
        """Hold one that was prepared before all that was read."""
        with self._lock:
            self._adopt(transaction)

    def _adopt(self, transaction: XaTransaction) -> None:
        if transaction.xid in self._sought:
            self._sought.discard(transaction.xid)
            self._taken[transaction.xid] = transaction
        self._replace(transaction)
        self._memory += transaction.memory
        self._make_room()

    def _replace(self, transaction: XaTransaction) -> None:
        """Hold ``transaction``, whose memory is counted, and one of the same name no longer."""
        former = self._transactions.get(transaction.xid)
        if former is not None:
            self._memory -= former.memory
        self._transactions[transaction.xid] = transaction

    def finish(self, transaction: XaTransaction) -> None:
        """XA COMMIT, wholly read. A batch may still end before it, so its events stay with it and in the store."""
        with self._lock:
            if self._transactions.get(transaction.xid) is transaction:
                del self._transactions[transaction.xid]
                self._memory -= transaction.memory

    def roll_back(self, xid: str) -> XaTransaction:
        """XA ROLLBACK: nobody will ask for its events, wherever a batch ends."""
        transaction = self._transactions.get(xid) or XaTransaction(xid, "")
        self.finish(transaction)
        with self._lock:
            self._sought.discard(xid)
            transaction.parts = [_Part(None, part.name) for part in transaction.parts if part.name]
        return transaction

    def events(self, transaction: XaTransaction) -> Iterator[XaEvents]:
        """What was held, part by part: no more of it comes into memory at once than its largest part."""
        for part in list(transaction.parts):
            with self._lock:
                events, name = part.events, part.name
            yield events if events is not None else self._stored().get(name)

    # -- the thread that searches beside the stream

    def sought(self) -> set[str]:
        """Return the names that are still looked for."""
        with self._lock:
            return set(self._sought)

    def take_sought(self, transaction: XaTransaction) -> None:
        """Hold what was found, unless the stream or the tail itself was faster: another may bear the name then."""
        with self._lock:
            if transaction.xid in self._sought:
                self._adopt(transaction)
            elif self._store is not None and transaction.names:
                self._store.drop(transaction.names)

    # -- the planner's thread

    def taken(self, xids: Iterable[str]) -> list[XaTransaction]:
        """Return those of the names ``xids`` that were looked for and found. Others are not asked for again."""
        with self._lock:
            self._taken = {xid: self._taken[xid] for xid in xids if xid in self._taken}
            return list(self._taken.values())

    def forget(self, prepared: PreparedXa) -> None:
        """Hold no longer what has ended without a word in the binlog."""
        with self._lock:
            transaction = self._transactions.get(prepared.xid)
            if transaction is not None and transaction.gtid == prepared.gtid:
                del self._transactions[prepared.xid]
                self._memory -= transaction.memory

    def keep(self, chosen: Sequence[XaTransaction]) -> list[PreparedXa]:
        """Puts them into the store, and says where. They stay in memory too, within its bound."""
        with self._lock:
            for transaction in chosen:
                _join(transaction)
            self._put([part for transaction in chosen for part in transaction.parts if not part.name])
            return [
                PreparedXa(transaction.xid, transaction.gtid, transaction.file, transaction.names, transaction.captured)
                for transaction in chosen
            ]

    # -- memory

    def _make_room(self) -> None:
        """Put whoever has most of the memory into the store wholly, in one part, while memory is full."""
        while self._store is not None and self._memory > self._bound:
            candidates = [*self._transactions.values(), *([self._open] if self._open else [])]
            largest = max(candidates, key=lambda transaction: transaction.memory)
            if not largest.memory:
                return
            _join(largest)
            self._put([part for part in largest.parts if not part.name])
            self._memory -= largest.memory
            for part in largest.parts:
                part.events = None

    def _put(self, parts: list[_Part]) -> None:
        content = [part.events for part in parts if part.events is not None]
        if content:
            for part, name in zip(parts, self._stored().put(content), strict=True):
                part.name = name

    def _stored(self) -> PartStore:
        assert self._store is not None
        return self._store


def _join(transaction: XaTransaction) -> None:
    """One part of all that is in memory alone, which is the end: what went to the store came before."""
    stored = [part for part in transaction.parts if part.name]
    alone = [part.events for part in transaction.parts if not part.name and part.events is not None]
    if len(alone) > 1:
        sizes = np.concatenate([np.diff(each.offsets) for each in alone])
        transaction.parts = [
            *stored,
            _Part(
                XaEvents(
                    b"".join([each.payload for each in alone]),
                    np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))),
                    np.concatenate([each.positions for each in alone]),
                )
            ),
        ]
