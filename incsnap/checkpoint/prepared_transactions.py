"""Events of prepared XA transactions beside the checkpoint, by name.

    prepared/<token>.arrow    one record batch a part; its name is <token>/<number>

A file is forced to the disk before an offset names a part of it, and is left until no offset can be read again that
names one: a power cut may take back the last batches that Spark has noted as done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from incsnap.binlog.prepared import XaEvents, XaMark, XaTransaction
from incsnap.checkpoint.files import Files, packed
from incsnap.checkpoint.windows import required_batch
from incsnap.events import PreparedXa

_FOLDER = "prepared"
#: Batches.
_KEPT = 16


class PreparedFiles:
    """A ``PartStore``. Used by the planner's thread and the tail's."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._lock = threading.Lock()
        #: Files of this process, with the parts in them that may still be asked for.
        self._parts: dict[str, set[str]] = {}
        #: File -> the batch with whose end it can go.
        self._leaving: dict[str, int] = {}

    def put(self, parts: Sequence[XaEvents]) -> list[str]:
        token = uuid4().hex
        content = {str(nth): _batch(part) for nth, part in enumerate(parts)}
        names = [f"{token}/{nth}" for nth in content]
        with self._lock:  # before it is there to be seen by ``adopt``
            self._parts[token] = set(names)
        self._files.write(_path(token), packed(content), durable=True)
        return names

    def get(self, name: str) -> XaEvents:
        """Raises ``CheckpointDamaged``."""
        token, _, number = name.partition("/")
        return _events(required_batch(self._files, _path(token), number, "events of a prepared XA transaction"))

    def drop(self, names: Sequence[str]) -> None:
        for token in self._without(names):
            self._files.delete(_path(token))

    def adopt(self, named: Iterable[PreparedXa], batch: int) -> None:
        """To be called at a start, whose offset is that of ``batch``: these may be asked for, what else other lives
        have left goes in time."""
        with self._lock:
            for each in named:
                for name in each.parts:
                    self._parts.setdefault(name.partition("/")[0], set()).add(name)
            for file in self._files.names(_FOLDER):
                token = file.partition(".")[0]
                if token not in self._parts:
                    self._leaving[token] = batch + _KEPT

    def release(self, names: Sequence[str], batch: int) -> None:
        """Lets files go in time: from ``batch`` on no offset names these parts."""
        for token in self._without(names):
            self._leaving.setdefault(token, batch + _KEPT)

    def forget(self, done: int) -> None:
        """Batch ``done`` is done."""
        for token in [token for token, last in self._leaving.items() if last <= done]:
            self._files.delete(_path(token))
            del self._leaving[token]

    def _without(self, names: Sequence[str]) -> list[str]:
        """Files in which no other parts are."""
        emptied = []
        with self._lock:
            for name in names:
                token = name.partition("/")[0]
                parts = self._parts.get(token, set())
                parts.discard(name)
                if not parts and self._parts.pop(token, None) is not None:
                    emptied.append(token)
        return emptied


def prepared_after(
    before: tuple[PreparedXa, ...], marks: Sequence[XaMark], keep: Callable[[Sequence[XaTransaction]], list[PreparedXa]]
) -> tuple[PreparedXa, ...]:
    """What is prepared at a batch's end; ``before``: at its start; ``marks``: its own. ``keep`` is called once, with
    those that were prepared in it."""
    still_prepared = {each.xid: each for each in before}
    newly_prepared: dict[str, XaTransaction] = {}
    for mark in marks:
        still_prepared.pop(mark.transaction.xid, None)
        newly_prepared.pop(mark.transaction.xid, None)
        if mark.prepared:
            newly_prepared[mark.transaction.xid] = mark.transaction
    return (*still_prepared.values(), *keep(list(newly_prepared.values())))


def parts_let_go(before: Sequence[PreparedXa], marks: Sequence[XaMark], after: Sequence[PreparedXa]) -> list[str]:
    """Parts that the offset ``before`` a batch or its ``marks`` know, and the offset ``after`` it does not."""
    named = {name for each in before for name in each.parts} | {
        name for mark in marks for name in mark.transaction.names
    }
    return sorted(named - {name for each in after for name in each.parts})


def _path(token: str) -> str:
    return f"{_FOLDER}/{token}.arrow"


def _batch(events: XaEvents) -> Any:
    """The joined events as they are: offsets and bytes are what an Arrow column of binaries is made of."""
    buffers = [None, pa.py_buffer(events.offsets.astype(np.int64)), pa.py_buffer(events.payload)]
    column = pa.Array.from_buffers(pa.large_binary(), len(events.positions), buffers)
    return pa.record_batch({"event": column, "position": pa.array(events.positions, pa.int64())})


def _events(batch: pa.RecordBatch) -> XaEvents:
    column = batch.column("event")
    _, offsets, payload = column.buffers()
    places = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1].copy()
    content: bytes = payload.to_pybytes() if payload is not None else b""
    positions = batch.column("position").to_numpy().copy()
    return XaEvents(content[places[0] : places[-1]], places - places[0], positions)
