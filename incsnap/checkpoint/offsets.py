"""Offsets in the form that Spark stores. A long queue of tables is in a file, so that the offset stays small.

    queues/<digest of the content>.json

The offset has the file's name and how many of its tables have begun. A signal may ask for 10,000 tables. In the offset
they would be 0.9 MB to write, read and compare several times in each batch, though only signals change them.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from incsnap.checkpoint.content_files import ContentFiles
from incsnap.checkpoint.files import Files
from incsnap.snapshot.context import Request
from incsnap.snapshot.offset import Offset, dump_requests, load_requests

#: Most tables that wait in the offset itself, about 6 kB.
_FEW = 64

Queue = tuple[Request, ...]


class QueueFiles:
    """The files with long queues, an implementation of `KeptQueues`.

    The planner writes them; every reader of offsets uses them.
    """

    def __init__(self, files: Files) -> None:
        self._files = ContentFiles(files, "queues", "the tables that wait")
        #: By file name: the queues as they were written.
        self._queues: dict[str, Queue] = {}

    def place_of(self, queue: Queue) -> tuple[str, int] | None:
        """Return the file of the queue and how many of its tables have begun.

        Return None if the queue is short (at most `_FEW` tables), or if no file has it yet.
        """
        if len(queue) > _FEW:
            for name, kept in self._queues.items():
                begun_count = len(kept) - len(queue)
                if begun_count >= 0 and kept[begun_count:] == queue:  # mostly identical objects: 0.1 ms for 10,000
                    return name, begun_count
        return None

    def requests(self, name: str) -> Queue:
        """Return the queue in a file. Raise CheckpointDamaged if the file is missing or torn."""
        if name not in self._queues:
            self._queues[name] = load_requests(json.loads(self._files.read(name)))
        return self._queues[name]

    def keep(self, queue: Queue) -> None:
        """Write the queue to a file if it is long and no file has it yet."""
        place = self.place_of(queue)
        if place is not None:
            self._files.named_again(place[0])
        elif len(queue) > _FEW:
            content = json.dumps(dump_requests(queue), separators=(",", ":")).encode()
            self._queues[self._files.write(content)] = queue

    def forget(self, queue: Queue, done: int) -> None:
        """Delete files that are not needed any more. Batch `done` is done, and `queue` waits at its end."""
        place = self.place_of(queue)
        for name in self._files.forget(place[0] if place is not None else None, done):
            self._queues.pop(name, None)


class KeptOffsets:
    """A converter between offsets and Spark's form.

    It remembers the last two, because Spark returns each offset three times.
    """

    def __init__(self, files: Files) -> None:
        self.queues = QueueFiles(files)
        self._last: deque[tuple[dict[str, Any], Offset]] = deque(maxlen=2)

    def dump(self, offset: Offset) -> dict[str, Any]:
        """Return the offset in Spark's form. Write its queue to a file if it is long."""
        for dumped, dumped_offset in self._last:
            if dumped_offset is offset:
                return dumped
        self.queues.keep(offset.snapshot.queue)
        dumped = offset.dump(self.queues)
        self._last.append((dumped, offset))
        return dumped

    def load(self, dumped: dict[str, Any]) -> Offset:
        """Return the offset for Spark's form. Raise CheckpointDamaged if the file of its queue is missing or torn."""
        for last_dumped, offset in self._last:
            if last_dumped == dumped:
                return offset
        offset = Offset.load(dumped, self.queues)
        self._last.append((dumped, offset))
        return offset

    def forget(self, end: Offset) -> None:
        """Delete files that are not needed any more, because the batch that ends at `end` is done."""
        self.queues.forget(end.snapshot.queue, end.batch)
