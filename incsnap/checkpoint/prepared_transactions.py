"""Files with the events of prepared XA transactions.

    prepared/<token>.arrow    one record batch for each part
                              the part's name is <token>/<number>

A file is forced to the disk before an offset names a part of it. It is deleted only when no offset that names a part
can be read any more. The reason: a power cut may take back the last batches that Spark has recorded as done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from incsnap.binlog.xa_parts import XaEvents, XaMark, XaTransaction
from incsnap.checkpoint.files import Files, packed
from incsnap.checkpoint.windows import required_batch
from incsnap.events import PreparedXa

_FOLDER = "prepared"
#: Batches for which a file is kept after the last offset that names a part of it.
_KEPT = 16


class PreparedFiles:
    """The files of prepared transactions, an implementation of `PartStore`.

    The planner's and the tail's thread use it.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._lock = threading.Lock()
        #: Files of this process, each with the parts that may still be requested.
        self._parts: dict[str, set[str]] = {}
        #: File -> the batch after which the file can be deleted.
        self._leaving: dict[str, int] = {}

    def put(self, parts: Sequence[XaEvents]) -> list[str]:
        """Write the parts to one file, forced to the disk, and return their names."""
        token = uuid4().hex
        content = {str(nth): _batch(part) for nth, part in enumerate(parts)}
        names = [f"{token}/{nth}" for nth in content]
        with self._lock:  # before `adopt` can see the file
            self._parts[token] = set(names)
        self._files.write(_path(token), packed(content), durable=True)
        return names

    def get(self, name: str) -> XaEvents:
        """Return the events of a part. Raise CheckpointDamaged if they are missing."""
        token, _, number = name.partition("/")
        return _events(required_batch(self._files, _path(token), number, "events of a prepared XA transaction"))

    def drop(self, names: Sequence[str]) -> None:
        """Delete parts that no offset has named. A file goes with its last part."""
        for token in self._without(names):
            self._files.delete(_path(token))

    def adopt(self, named: Iterable[PreparedXa], batch: int) -> None:
        """Register the parts that the offset of `batch` names. Call it at a start.

        Other files of earlier runs are deleted after `_KEPT` batches.
        """
        with self._lock:
            for each in named:
                for name in each.parts:
                    self._parts.setdefault(name.partition("/")[0], set()).add(name)
            for file in self._files.names(_FOLDER):
                token = file.partition(".")[0]
                if token not in self._parts:
                    self._leaving[token] = batch + _KEPT

    def release(self, names: Sequence[str], batch: int) -> None:
        """Delete these parts later, because no offset names them from `batch` on."""
        for token in self._without(names):
            self._leaving.setdefault(token, batch + _KEPT)

    def forget(self, done: int) -> None:
        """Delete files whose time has come, because batch `done` is done."""
        for token in [token for token, last in self._leaving.items() if last <= done]:
            self._files.delete(_path(token))
            del self._leaving[token]

    def _without(self, names: Sequence[str]) -> list[str]:
        """Remove the parts from their files and return the files that have no parts left."""
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
    """Return the XA transactions that are prepared at a batch's end, for the offset there.

    `before` are those at the batch's start. `marks` are the batch's XA PREPAREs, XA COMMITs and XA ROLLBACKs in order.
    `keep` stores the events of transactions and returns them as PreparedXa. It is called once, with the transactions
    that the batch has prepared and not ended.
    """
    still_prepared = {each.xid: each for each in before}
    newly_prepared: dict[str, XaTransaction] = {}
    for mark in marks:
        still_prepared.pop(mark.transaction.xid, None)
        newly_prepared.pop(mark.transaction.xid, None)
        if mark.prepared:
            newly_prepared[mark.transaction.xid] = mark.transaction
    return (*still_prepared.values(), *keep(list(newly_prepared.values())))


def parts_let_go(before: Sequence[PreparedXa], marks: Sequence[XaMark], after: Sequence[PreparedXa]) -> list[str]:
    """Return the parts of files that are not needed any more, for `PreparedFiles.release`.

    These are the parts that `before` (the prepared transactions before a batch) or the batch's `marks` name, and that
    `after` does not name.
    """
    named = {name for each in before for name in each.parts} | {
        name for mark in marks for name in mark.transaction.names
    }
    return sorted(named - {name for each in after for name in each.parts})


def _path(token: str) -> str:
    return f"{_FOLDER}/{token}.arrow"


def _batch(events: XaEvents) -> Any:
    """Return the events as a record batch.

    Offsets and bytes are used as they are: they have the layout of an Arrow column.
    """
    buffers = [None, pa.py_buffer(events.offsets.astype(np.int64)), pa.py_buffer(events.payload)]
    column = pa.Array.from_buffers(pa.large_binary(), len(events.positions), buffers)
    return pa.record_batch({"event": column, "position": pa.array(events.positions, pa.int64())})


def _events(batch: pa.RecordBatch) -> XaEvents:
    """Return the events in a record batch that `_batch` made."""
    column = batch.column("event")
    _, offsets, payload = column.buffers()
    places = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1].copy()
    content: bytes = payload.to_pybytes() if payload is not None else b""
    positions = batch.column("position").to_numpy().copy()
    return XaEvents(content[places[0] : places[-1]], places - places[0], positions)
