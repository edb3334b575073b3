"""Offsets as Spark has them, without what would make them large: a long queue of tables is in a file beside the
checkpoint, and the offset has its name and how many of its tables have been begun.

    queues/<digest of the content>.json

A signal may ask for 10,000 tables: 0.9 MB that would be written, read and compared several times in each batch, though
it changes with signals only.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from incsnap.checkpoint.content_files import ContentFiles
from incsnap.checkpoint.files import Files
from incsnap.snapshot.context import Request
from incsnap.snapshot.offset import Offset, dump_requests, load_requests

#: Tables that may wait in the offset itself: some 6 kB.
_FEW = 64

Queue = tuple[Request, ...]


class QueueFiles:
    """``KeptQueues``; read by whoever reads offsets, written by the planner."""

    def __init__(self, files: Files) -> None:
        self._files = ContentFiles(files, "queues", "the tables that wait")
        #: By name, as they were when they were written down.
        self._queues: dict[str, Queue] = {}

    def place_of(self, queue: Queue) -> tuple[str, int] | None:
        if len(queue) > _FEW:
            for name, kept in self._queues.items():
                begun_count = len(kept) - len(queue)
                if begun_count >= 0 and kept[begun_count:] == queue:  # the same objects mostly: 0.1 ms for 10,000
                    return name, begun_count
        return None

    def requests(self, name: str) -> Queue:
        """Raises ``CheckpointDamaged``."""
        if name not in self._queues:
            self._queues[name] = load_requests(json.loads(self._files.read(name)))
        return self._queues[name]

    def keep(self, queue: Queue) -> None:
        """Writes the queue down if it is a long one; ``place_of`` knows it from then on."""
        place = self.place_of(queue)
        if place is not None:
            self._files.named_again(place[0])
        elif len(queue) > _FEW:
            content = json.dumps(dump_requests(queue), separators=(",", ":")).encode()
            self._queues[self._files.write(content)] = queue

    def forget(self, queue: Queue, done: int) -> None:
        """Batch ``done``, at whose end ``queue`` waits, is done."""
        place = self.place_of(queue)
        for name in self._files.forget(place[0] if place is not None else None, done):
            self._queues.pop(name, None)


class KeptOffsets:
    """Brings offsets to and from the form that Spark has. The last ones are remembered: Spark gives back each three
    times."""

    def __init__(self, files: Files) -> None:
        self.queues = QueueFiles(files)
        self._last: deque[tuple[dict[str, Any], Offset]] = deque(maxlen=2)

    def dump(self, offset: Offset) -> dict[str, Any]:
        for dumped, dumped_offset in self._last:
            if dumped_offset is offset:
                return dumped
        self.queues.keep(offset.snapshot.queue)
        dumped = offset.dump(self.queues)
        self._last.append((dumped, offset))
        return dumped

    def load(self, dumped: dict[str, Any]) -> Offset:
        for last_dumped, offset in self._last:
            if last_dumped == dumped:
                return offset
        offset = Offset.load(dumped, self.queues)
        self._last.append((dumped, offset))
        return offset

    def forget(self, end: Offset) -> None:
        """The batch that ends there is done."""
        self.queues.forget(end.snapshot.queue, end.batch)
