"""Slices of the binlog by way of a file, beside the parts that name it.

Spark copies what a task is given four times through the JVM's heap: from the planner's pipe, into the stage's
partitions, into the task, out of it. For 320 MB of binlog, a million changes of a backlog, that was 1.3 of the 2.7 GB
that the JVM allotted in all, and a full collection of 110 ms in every batch. On one machine a file that is read and
deleted within the second stays in the page cache. For executors elsewhere the file is beside the checkpoint, which they
all see: the driver sends what is inside parts more slowly than the planner reads (docs/scaling.md).
"""

from __future__ import annotations

import hashlib
import pickle
import secrets
from contextlib import suppress
from typing import NamedTuple

from incsnap.binlog.slices import Slice
from incsnap.checkpoint.files import Files
from incsnap.errors import IncsnapError

#: Bytes from which a file is worth its 0.2 ms, and what a shared folder or an object store takes.
_LEAST, _LEAST_SHARED = 256 << 10, 1 << 20
#: Below the checkpoint.
_SHARED = "slices"


class SliceFile(NamedTuple):
    """Where a slice is. ``digest``: of the file, hexadecimal, where others than the job may write to the folder: what
    is unpickled is code. "" in a folder of the job's own."""

    folder: str
    name: str
    digest: str


class SliceFiles:
    """The planner's. ``folder``: the job's own, or incsnap's part of the checkpoint. ``shared``: it is the latter, and
    executors of other machines read slices there."""

    def __init__(self, folder: str, *, shared: bool = False) -> None:
        self._folder = folder
        self._files = Files(folder)
        self._shared = shared
        self._names: list[str] = []
        if shared:  # what a planner left that was killed
            self._files.delete_folder(_SHARED)

    def forget(self) -> None:
        """The batch that they were written for is done, or is planned again."""
        for name in self._names:
            with suppress(OSError):
                self._files.delete(name)
        self._names.clear()

    def put(self, slice_: Slice) -> Slice | SliceFile:
        """Where it is; or ``slice_`` itself, where it is small, or nothing can be written."""
        if len(slice_.payload) < (_LEAST_SHARED if self._shared else _LEAST):
            return slice_
        name, digest = f"slice-{secrets.token_hex(8)}", ""
        if self._shared:
            name = f"{_SHARED}/{name}"
        self._names.append(name)
        try:
            if self._shared:
                content = pickle.dumps(slice_, protocol=5)
                digest = _digest(content)
                self._files.write(name, content)
            else:
                self._files.write(name, lambda out: pickle.dump(slice_, out, protocol=5))
        except OSError:
            with suppress(OSError):
                self._files.delete(name)
            return slice_
        return SliceFile(self._folder, name, digest)


def slice_of(where: Slice | SliceFile) -> Slice:
    """What ``put`` was given. Raises ``IncsnapError`` when the file is gone or another one; the batch is planned again
    then."""
    if isinstance(where, Slice):
        return where
    content = Files(where.folder).read(where.name)
    if content is None:
        raise IncsnapError(
            f"The slice {where.folder}/{where.name} is gone",
            "Its planner has ended, and the job goes on from its offset; or the folder is not the one that the driver"
            " sees: checkpoint.location must be on a file system that all machines share.",
        )
    if where.digest and _digest(content) != where.digest:
        raise IncsnapError(
            f"The slice {where.folder}/{where.name} is not what the planner has written",
            "Somebody else writes to the checkpoint: only the job may.",
        )
    slice_: Slice = pickle.loads(content)
    return slice_


def _digest(content: object) -> str:
    """SHA-256 does 1.2 GB/s on a core with instructions for it; BLAKE2 has 0.5."""
    return hashlib.sha256(content).hexdigest()  # type: ignore[arg-type]  # any buffer
