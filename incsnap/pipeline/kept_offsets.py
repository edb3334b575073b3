"""Offsets as Spark has them, without what would make them large: a long queue of tables is in a file beside the
checkpoint, and the offset has its name and how many of its tables have been begun.

    queues/<digest of the content>.json

A signal may ask for 10,000 tables: 0.9 MB that would be written, read and compared several times in each batch, though
it changes with signals only. A file is forced to the disk before an offset names it, and is left until no offset can be
read again that does: a power cut may take back the last batches that Spark has noted as done.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from typing import Any

from incsnap.pipeline.buffer import CheckpointDamaged
from incsnap.pipeline.files import Files
from incsnap.snapshot.context import Request
from incsnap.snapshot.offset import Offset, dump_requests, load_requests

_FOLDER = "queues"
#: Tables that may wait in the offset itself: some 6 kB.
_FEW = 64
#: Batches.
_KEPT = 16

Queue = tuple[Request, ...]


class QueueFiles:
    """``KeptQueues``; read by whoever reads offsets, written by the planner."""

    def __init__(self, files: Files) -> None:
        self._files = files
        #: By name, as they were when they were written down.
        self._known: dict[str, Queue] = {}
        #: File -> the batch with whose end it can go.
        self._leaving: dict[str, int] = {}
        self._looked = False

    def place_of(self, queue: Queue) -> tuple[str, int] | None:
        if len(queue) > _FEW:
            for name, known in self._known.items():
                begun = len(known) - len(queue)
                if begun >= 0 and known[begun:] == queue:  # the same objects mostly: 0.1 ms for 10,000
                    return name, begun
        return None

    def requests(self, name: str) -> Queue:
        """Raises ``CheckpointDamaged``."""
        if name not in self._known:
            content = self._files.read(_path(name))
            found = content.to_pybytes() if content is not None else b""
            if _digest(found) != name:
                raise CheckpointDamaged(f"{self._files.path(_path(name))}, the tables that wait, is gone or torn")
            self._known[name] = load_requests(json.loads(found))
        return self._known[name]

    def keep(self, queue: Queue) -> None:
        """From now on ``place_of`` knows it, if it is a long one."""
        place = self.place_of(queue)
        if place is not None:
            # Spark says that a batch is done after it has asked for the next, which may name an older file anew.
            self._leaving.pop(place[0], None)
        elif len(queue) > _FEW:
            content = json.dumps(dump_requests(queue), separators=(",", ":")).encode()
            name = _digest(content)
            self._files.write(_path(name), content, durable=True)
            self._known[name] = queue

    def forget(self, queue: Queue, done: int) -> None:
        """Batch ``done``, at whose end ``queue`` waits, is done."""
        if not self._looked:
            self._looked = True
            left = [file.partition(".")[0] for file in self._files.names(_FOLDER)]
        else:
            left = list(self._known)
        place = self.place_of(queue)
        for name in left:
            self._leaving.setdefault(name, done + _KEPT)
        if place is not None:
            self._leaving.pop(place[0], None)
        for name in [name for name, last in self._leaving.items() if last <= done]:
            self._files.delete(_path(name))
            self._known.pop(name, None)
            del self._leaving[name]


class KeptOffsets:
    """To and from the form that Spark has. The last ones are remembered: Spark gives back each three times."""

    def __init__(self, files: Files) -> None:
        self.queues = QueueFiles(files)
        self._last: deque[tuple[dict[str, Any], Offset]] = deque(maxlen=2)

    def dump(self, offset: Offset) -> dict[str, Any]:
        for dumped, known in self._last:
            if known is offset:
                return dumped
        self.queues.keep(offset.snapshot.queue)
        dumped = offset.dump(self.queues)
        self._last.append((dumped, offset))
        return dumped

    def load(self, found: dict[str, Any]) -> Offset:
        for dumped, known in self._last:
            if dumped == found:
                return known
        offset = Offset.load(found, self.queues)
        self._last.append((found, offset))
        return offset

    def forget(self, end: Offset) -> None:
        """The batch that ends there is done."""
        self.queues.forget(end.snapshot.queue, end.batch)


def _path(name: str) -> str:
    return f"{_FOLDER}/{name}.json"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
