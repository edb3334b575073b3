"""Named moments of a batch, seen from outside: a file appears beside the checkpoint, or a record in Kafka.

Why not a hook in the product: it would have to be proved that it never fires in production, and it would fix in
advance where a job can die. Every durable step of a job is a file written under a temporary name and renamed, or a
Kafka transaction, and the kernel tells of files at once (inotify(7)): *before* a step is the creation of the temporary
file (or a record that read_uncommitted sees), *after* it the rename (or what read_committed sees). All processes are
stopped then, what has become durable is looked at and counted, and only then something is killed: what a kill met is
known, not assumed.
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
from incsnap.checkpoint.planned import planned
from incsnap.checkpoint.status import newest_offset

_MOVED_TO, _CREATED, _IS_FOLDER = 0x80, 0x100, 0x40000000
_HEAD = struct.Struct("iIII")


@dataclass(frozen=True, slots=True)
class Moment:
    """``folder``: beneath the checkpoint; ``deep``: the file is in a folder below it. ``before``: the rename."""

    name: str
    folder: str
    file: str
    before: bool
    deep: bool = False

    def matches(self, name: str, renamed: bool) -> bool:
        pattern = rf"\.?{self.file}\..*tmp" if self.before else self.file
        return renamed is not self.before and re.fullmatch(pattern, name) is not None


def _both(what: str, folder: str, file: str, *, deep: bool = False) -> tuple[Moment, Moment]:
    return Moment(f"before {what}", folder, file, True, deep), Moment(f"after {what}", folder, file, False, deep)


#: By row of the matrix.
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
    """Waits for a moment; watches from its making on, so that nothing in between is missed."""

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
        """True once it has come, within ``seconds``."""
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
                # What was written between the making of the folder and the watch.
                yield from (self._moment.matches(each.name, not each.name.endswith("tmp")) for each in _in(inside))


def _in(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def durable(checkpoint: Path) -> str:
    """What of the newest batch is durable: where a crash now would leave it. To be asked while all stands still."""
    plan = planned(Files(str(checkpoint / "incsnap")))
    offset, commit = newest_offset(str(checkpoint)), newest_offset(str(checkpoint), "commits")
    numbers = [each.batch if each is not None else 0 for each in (plan, offset, commit)]
    if numbers[0] > numbers[1]:
        return "planned"
    return "being sent" if numbers[1] > numbers[2] else "between batches"


class Records:
    """Tells when records of a topic are to be seen: with ``committed`` behind a transaction's commit, else before."""

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
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline and not ended():
                message = self._consumer.poll(0.05)
                if message is not None and message.error() is None:
                    return True
            return False
        finally:
            self._consumer.close()
