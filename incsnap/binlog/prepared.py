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

#: Held in memory, of all prepared transactions together.
MEMORY_BYTES = 32 << 20


class HeldEvents(NamedTuple):
    """Events in binlog order, joined, header and body without checksum: event i is
    ``payload[offsets[i]:offsets[i + 1]]`` and stood at ``positions[i]`` of its file."""

    payload: bytes
    offsets: Longs
    positions: Longs


class PartStore(Protocol):
    """Where events are put so that they survive the process."""

    def put(self, parts: Sequence[HeldEvents]) -> list[str]:
        """On the disk when it returns; the name of each."""

    def get(self, name: str) -> HeldEvents:
        """An IncsnapError where it is gone."""

    def drop(self, names: Sequence[str]) -> None:
        """Parts that no offset has named."""


@dataclass(slots=True)
class _Part:
    """In memory, in the store, or both."""

    events: HeldEvents | None
    name: str = ""

    @property
    def memory(self) -> int:
        return len(self.events.payload) if self.events is not None else 0


@dataclass(slots=True, eq=False)
class Held:
    """One transaction; ``file`` and ``captured`` as in ``PreparedXa``."""

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

    held: Held
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
    was prepared before all that is read is committed (None: of all of them).
    """

    def __init__(
        self,
        store: PartStore | None = None,
        known: Iterable[PreparedXa] = (),
        captured: str = "",
        only: Collection[str] | None = None,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._store = store
        self._captured = captured
        self._only = only
        self._bound = memory_bytes
        self._lock = threading.Lock()
        self._held = {
            each.xid: Held(each.xid, each.gtid, each.file, [_Part(None, name) for name in each.parts], each.captured)
            for each in known
            if each.captured in ("", captured)
        }
        self._open: Held | None = None
        self._memory = 0

    # -- the tail's thread

    def sibling(self, only: Collection[str]) -> PreparedTransactions:
        """Knows nothing yet and holds none but those; what it holds can be handed over (``found``)."""
        return PreparedTransactions(self._store, (), self._captured, only, self._bound)

    def begin(self, xid: str, gtid: str, file: str) -> None:
        """XA START. One that was begun before and not prepared is dropped: its connection broke, it comes again."""
        self.drop_open()
        with self._lock:
            self._open = Held(xid, gtid, file)

    def add(self, events: HeldEvents, *, passed_over: bool) -> None:
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

    def prepare(self) -> Held:
        """XA PREPARE of the transaction that was begun. A name may be used again after its end."""
        with self._lock:
            assert self._open is not None
            held, self._open = self._open, None
            self._held[held.xid] = held
            return held

    def commit_open(self) -> Held:
        """XA COMMIT ... ONE PHASE of the transaction that was begun: it was never prepared."""
        held = self.prepare()
        self.finish(held)
        return held

    def of(self, xid: str, gtid: str, place: str) -> Held:
        """What XA COMMIT makes visible. ``NotPrepared`` where that was never seen."""
        held = self._held.get(xid)
        if held is not None:
            return held
        if self._only is None:
            raise NotPrepared(xid, gtid, place)
        return Held(xid, "")

    def found(self, held: Held) -> None:
        """One that was prepared before all that was read."""
        with self._lock:
            self._held[held.xid] = held
            self._memory += held.memory
            self._make_room()

    def all(self) -> list[Held]:
        """What is prepared now."""
        with self._lock:
            return list(self._held.values())

    def finish(self, held: Held) -> None:
        """XA COMMIT, wholly read. A batch may still end before it, so its events stay with it and in the store."""
        with self._lock:
            if self._held.get(held.xid) is held:
                del self._held[held.xid]
                self._memory -= held.memory

    def roll_back(self, xid: str) -> Held:
        """XA ROLLBACK: nobody will ask for its events, wherever a batch ends."""
        held = self._held.get(xid) or Held(xid, "")
        self.finish(held)
        with self._lock:
            held.parts = [_Part(None, part.name) for part in held.parts if part.name]
        return held

    def events(self, held: Held) -> Iterator[HeldEvents]:
        """What was held, part by part: no more of it comes into memory at once than its largest part."""
        for part in list(held.parts):
            with self._lock:
                events, name = part.events, part.name
            yield events if events is not None else self._stored().get(name)

    # -- the planner's thread

    def keep(self, chosen: Sequence[Held]) -> list[PreparedXa]:
        """Puts them into the store, and says where. They stay in memory too, within its bound."""
        with self._lock:
            for held in chosen:
                _join(held)
            self._put([part for held in chosen for part in held.parts if not part.name])
            return [PreparedXa(held.xid, held.gtid, held.file, held.names, held.captured) for held in chosen]

    # -- memory

    def _make_room(self) -> None:
        """Memory is full: whoever has most of it goes to the store wholly, in one part."""
        while self._store is not None and self._memory > self._bound:
            candidates = [*self._held.values(), *([self._open] if self._open else [])]
            largest = max(candidates, key=lambda held: held.memory)
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


def _join(held: Held) -> None:
    """One part of all that is in memory alone, which is the end: what went to the store came before."""
    stored = [part for part in held.parts if part.name]
    alone = [part.events for part in held.parts if not part.name and part.events is not None]
    if len(alone) > 1:
        sizes = np.concatenate([np.diff(each.offsets) for each in alone])
        held.parts = [
            *stored,
            _Part(
                HeldEvents(
                    b"".join([each.payload for each in alone]),
                    np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))),
                    np.concatenate([each.positions for each in alone]),
                )
            ),
        ]
