"""Named moments of a batch, observed from outside: a file beside the checkpoint, or a record in Kafka.

Every durable step of a job is a file that is written under a temporary name and renamed, or a Kafka transaction. The
kernel reports files at once (inotify(7)). *Before* a step means that the temporary file was created, or that
read_uncommitted sees a record. *After* it means the rename, or that read_committed sees the record.

At a moment all processes are stopped, and the durable steps are counted. Only then a process is killed. So it is known
what each kill met.

The product has no hooks for this. A hook must be proved never to fire in production, and it fixes in advance where a
job can die.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.planned_batch import planned_end
from incsnap.checkpoint.status import newest_offset

_MOVED_TO, _CREATED, _IS_FOLDER = 0x80, 0x100, 0x40000000
_HEAD = struct.Struct("iIII")


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment before or after a durable step."""

    name: str
    folder: str  #: below the checkpoint
    file: str  #: pattern of the file's name
    before: bool  #: True: before the rename
    deep: bool = False  #: the file is in a folder below `folder`

    def matches(self, name: str, renamed: bool) -> bool:
        """Whether this event of a file is the moment."""
        pattern = rf"\.?{self.file}\..*tmp" if self.before else self.file
        return renamed is not self.before and re.fullmatch(pattern, name) is not None


def _both(what: str, folder: str, file: str, *, deep: bool = False) -> tuple[Moment, Moment]:
    return Moment(f"before {what}", folder, file, True, deep), Moment(f"after {what}", folder, file, False, deep)


#: The two moments of each row of the matrix.
FILES = {
    "plan": _both("the plan is remembered", "incsnap", r"planned-offset\.json"),
    "offset-log": _both("Spark writes the offset", "spark/offsets", r"\d+"),
    "commit-log": _both("Spark writes the commit", "spark/commits", r"\d+"),
    "counters": _both("the batch is counted", "incsnap", r"progress\.json"),
    "window": _both("a window's rows are written", "incsnap/windows", r"[0-9a-f]{32}\.arrow", deep=True),
    "manifest": _both("a manifest is written", "incsnap/windows", r"manifest\.json", deep=True),
    "discards": _both("discards are written", "incsnap/discards", r"\d+\.arrow", deep=True),
}


class Watch:
    """A wait for a moment. It watches from its creation, so that no moment in between is missed."""

    def __init__(self, checkpoint: Path, moment: Moment) -> None:
        self._moment = moment
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._folders: dict[int, Path] = {}
        self._top = checkpoint / moment.folder

    def __enter__(self) -> Self:
        if self._moment.deep:
            self._top.mkdir(parents=True, exist_ok=True)
            for folder in self._top.iterdir():
                self._add(folder)
        self._add(self._top)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._inotify)

    def wait(self, seconds: float) -> bool:
        """Return True if the moment comes within `seconds`."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self._inotify], [], [], left)[0] and any(self._seen()):
                return True
        return False

    def _add(self, folder: Path) -> bool:
        watch = self._libc.inotify_add_watch(self._inotify, os.fsencode(folder), _MOVED_TO | _CREATED)
        if watch >= 0:
            self._folders[watch] = folder
        return bool(watch >= 0)

    def _seen(self) -> Iterator[bool]:
        content, at = os.read(self._inotify, 1 << 16), 0
        while at < len(content):
            watch, mask, _, length = _HEAD.unpack_from(content, at)
            name = content[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0").decode()
            at += _HEAD.size + length
            if not mask & _IS_FOLDER:
                yield self._moment.matches(name, bool(mask & _MOVED_TO))
            elif self._moment.deep and self._add(inside := self._folders[watch] / name) and inside.exists():
                # Files that were written after the folder was made and before it was watched.
                yield from (self._moment.matches(each.name, not each.name.endswith("tmp")) for each in _in(inside))


def _in(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def durable(checkpoint: Path) -> str:
    """Return the durable state of the newest batch, in which a crash now would leave it.

    All processes must stand still.
    """
    plan = planned_end(Files(str(checkpoint / "incsnap")))
    offset, commit = newest_offset(str(checkpoint)), newest_offset(str(checkpoint), "commits")
    numbers = [each.batch if each is not None else 0 for each in (plan, offset, commit)]
    if numbers[0] > numbers[1]:
        return "planned"
    return "being sent" if numbers[1] > numbers[2] else "between batches"


class Records:
    """A wait for a record of a topic: with `committed` after its transaction's commit, else before."""

    def __init__(self, bootstrap: str, topic: str, *, committed: bool) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "incsnap-moments",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 5,
                "log_level": 0,
            }
        )
        partitions = self._consumer.list_topics(topic, timeout=20).topics[topic].partitions
        self._consumer.assign([TopicPartition(topic, each, OFFSET_END) for each in partitions])

    def wait(self, seconds: float, ended: Callable[[], bool]) -> bool:
        """Return True if a record is visible within `seconds`. Stop when `ended()` is true."""
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline and not ended():
                message = self._consumer.poll(0.05)
                if message is not None and message.error() is None:
                    return True
            return False
        finally:
            self._consumer.close()
