"""The store of prepared XA transactions: it holds their events from XA PREPARE until XA COMMIT or XA ROLLBACK.

The rows become visible with XA COMMIT: minutes or days later, or never. The server does not send them again. So they
are held here: in memory up to a bound, the rest in a `PartStore`. At the end of a batch `keep` puts all transactions
that are still prepared into the store, before the offset names them.

The tail's thread adds and reads events, and the planner's thread keeps them. A lock guards each step.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence

from incsnap.binlog.xa_parts import PartStore, XaEvents, XaPart, XaTransaction
from incsnap.events import PreparedXa

#: Most bytes of events in memory, of all prepared transactions together.
MEMORY_BYTES = 32 << 20


class NotPrepared(Exception):
    """An error: transaction `gtid` at `place` is the XA COMMIT of `xid`, but its XA PREPARE was not read."""

    def __init__(self, xid: str, gtid: str, place: str) -> None:
        super().__init__(
            f"{place}: {gtid} is the XA COMMIT of {xid}, but its XA PREPARE is before the start of the stream"
        )
        self.xid = xid
        self.gtid = gtid
        self.place = place


class PreparedTransactions:
    """The XA transactions that are prepared at the present place of the stream, and the one that is being read.

    `store` keeps their events beyond the process; None keeps all events in memory. `known` are the prepared
    transactions of the offset at which the stream begins. `captured` is the present filter of tables. A known
    transaction that was read with another filter is ignored, because its events of other tables are missing. `only`
    limits the object to transactions of these names; None means all names. With `only`, an XA COMMIT without XA PREPARE
    is no error. `memory_bytes` is the most bytes of events in memory. `sought` are names of transactions that were
    prepared before the stream's beginning, and that a search beside the stream looks for.
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
        self._lock = threading.RLock()
        self._transactions = {
            each.xid: XaTransaction(
                each.xid, each.gtid, each.file, [XaPart(None, name) for name in each.parts], each.captured
            )
            for each in known
            if each.captured in ("", captured)
        }
        self._open: XaTransaction | None = None
        self._memory = 0
        #: `_sought`: names that are still searched for. `_taken`: transactions that were found under such names.
        self._sought = set(sought) - self._transactions.keys()
        self._taken: dict[str, XaTransaction] = {}

    # -- the tail's thread

    def sibling(self, only: Collection[str]) -> PreparedTransactions:
        """Return an empty object with the same store, for a search through older files.

        It holds events only for the names `only`. `adopt` moves a transaction from there to this object.
        """
        return PreparedTransactions(self._store, (), self._captured, only, self._bound)

    def begin(self, xid: str, gtid: str, file: str) -> None:
        """Begin a transaction: XA START. An earlier transaction of this name has ended.

        A transaction that was begun and not prepared is dropped. Its connection broke, and the server sends it again.
        """
        self.drop_open()
        with self._lock:
            self._sought.discard(xid)
            self._open = XaTransaction(xid, gtid, file)

    def add(self, events: XaEvents, *, passed_over: bool) -> None:
        """Add events to the transaction that was begun.

        `passed_over`: events of excluded tables were left out. Then the transaction is valid only for the present
        filter.
        """
        with self._lock:
            assert self._open is not None
            if passed_over:
                self._open.captured = self._captured
            if len(events.positions) and (self._only is None or self._open.xid in self._only):
                self._open.parts.append(XaPart(events))
                self._memory += len(events.payload)
                self._make_room()

    def drop_open(self) -> None:
        """Drop the transaction that was begun and not prepared."""
        with self._lock:
            if self._open is not None:
                self._memory -= self._open.memory
                if self._store is not None and self._open.names:
                    self._store.drop(self._open.names)
            self._open = None

    def prepare(self) -> XaTransaction:
        """Prepare the transaction that was begun, and return it.

        It replaces an earlier transaction of its name: the binlog does not always show how a transaction ended.
        """
        with self._lock:
            assert self._open is not None
            transaction, self._open = self._open, None
            self._replace(transaction)
            return transaction

    def of(self, xid: str, gtid: str, place: str) -> XaTransaction:
        """Return the transaction that XA COMMIT makes visible. Raise NotPrepared if its XA PREPARE was not read."""
        transaction = self._transactions.get(xid)
        if transaction is not None:
            return transaction
        if self._only is None:
            raise NotPrepared(xid, gtid, place)
        return XaTransaction(xid, "")

    def holds(self, xid: str) -> bool:
        """Return True if a transaction of this name is prepared or begun at the present place."""
        with self._lock:
            return xid in self._transactions or (self._open is not None and self._open.xid == xid)

    def adopt(self, transaction: XaTransaction) -> None:
        """Hold a transaction that was prepared before the stream's beginning."""
        with self._lock:
            if transaction.xid in self._sought:
                self._sought.discard(transaction.xid)
                self._taken[transaction.xid] = transaction
            self._replace(transaction)
            self._memory += transaction.memory
            self._make_room()

    def _replace(self, transaction: XaTransaction) -> None:
        """Hold `transaction`, whose memory is counted already, in place of an earlier one of its name."""
        former = self._transactions.get(transaction.xid)
        if former is not None:
            self._memory -= former.memory
        self._transactions[transaction.xid] = transaction

    def finish(self, transaction: XaTransaction) -> None:
        """Remove a transaction after its XA COMMIT was read.

        A batch may still end before the XA COMMIT. So the transaction keeps its events, and the store keeps its parts.
        """
        with self._lock:
            if self._transactions.get(transaction.xid) is transaction:
                del self._transactions[transaction.xid]
                self._memory -= transaction.memory

    def roll_back(self, xid: str) -> XaTransaction:
        """Remove a transaction after XA ROLLBACK, and return it. Its events are never needed again."""
        transaction = self._transactions.get(xid) or XaTransaction(xid, "")
        self.finish(transaction)
        with self._lock:
            self._sought.discard(xid)
            transaction.parts = [XaPart(None, part.name) for part in transaction.parts if part.name]
        return transaction

    def events(self, transaction: XaTransaction) -> Iterator[XaEvents]:
        """Yield the transaction's events part by part. Only one stored part is in memory at a time."""
        for part in list(transaction.parts):
            with self._lock:
                events, name = part.events, part.name
            yield events if events is not None else self._stored().get(name)

    # -- the thread that searches beside the stream

    def sought(self) -> set[str]:
        """Return the names that are still searched for."""
        with self._lock:
            return set(self._sought)

    def take_sought(self, transaction: XaTransaction) -> None:
        """Hold a transaction that the search beside the stream has found.

        Drop the transaction if its name is no longer sought. In this case the stream has meanwhile read XA START or XA
        ROLLBACK with this name, or the tail has found the transaction by itself.
        """
        with self._lock:
            if transaction.xid in self._sought:
                self.adopt(transaction)
            elif self._store is not None and transaction.names:
                self._store.drop(transaction.names)

    # -- the planner's thread

    def taken(self, xids: Iterable[str]) -> list[XaTransaction]:
        """Return the transactions of the names `xids` that were sought and found.

        The object stops remembering that other names were found.
        """
        with self._lock:
            self._taken = {xid: self._taken[xid] for xid in xids if xid in self._taken}
            return list(self._taken.values())

    def forget(self, prepared: PreparedXa) -> None:
        """Remove a transaction that ended without an event in the binlog."""
        with self._lock:
            transaction = self._transactions.get(prepared.xid)
            if transaction is not None and transaction.gtid == prepared.gtid:
                self.finish(transaction)

    def keep(self, chosen: Sequence[XaTransaction]) -> list[PreparedXa]:
        """Put the events of `chosen` into the store, and return an entry for the offset for each transaction.

        The planner calls this before it writes the offset. The events stay in memory too, within the bound.
        """
        with self._lock:
            self._put(chosen)
            return [
                PreparedXa(transaction.xid, transaction.gtid, transaction.file, transaction.names, transaction.captured)
                for transaction in chosen
            ]

    # -- memory

    def _make_room(self) -> None:
        """Move transactions into the store while the memory is full, the largest first."""
        while self._store is not None and self._memory > self._bound:
            candidates = [*self._transactions.values(), *([self._open] if self._open else [])]
            largest = max(candidates, key=lambda transaction: transaction.memory)
            if not largest.memory:
                return
            self._put([largest])
            self._memory -= largest.memory
            for part in largest.parts:
                part.events = None

    def _put(self, chosen: Sequence[XaTransaction]) -> None:
        """Put the events of `chosen` that are only in memory into the store."""
        for transaction in chosen:
            transaction.join_parts()
        parts = [part for transaction in chosen for part in transaction.parts if not part.name]
        content = [part.events for part in parts if part.events is not None]
        if content:
            for part, name in zip(parts, self._stored().put(content), strict=True):
                part.name = name

    def _stored(self) -> PartStore:
        assert self._store is not None
        return self._store
