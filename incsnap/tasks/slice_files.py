"""Files that carry large slices of the binlog to their tasks. A part of a batch then has only the file's name.

Spark copies a task's input four times through the JVM's heap: out of the planner's pipe, into the stage's partitions,
into the task, out of it. With a backlog of a million changes (320 MB of binlog) this was 1.3 of the 2.7 GB that the JVM
allotted in all. Every batch had a full collection of 110 ms. On one machine a file that is read and deleted within a
second stays in the page cache. For executors elsewhere the file is beside the checkpoint, which they all see: the
driver sends the content of parts more slowly than the planner reads (docs/scaling.md).
"""

from __future__ import annotations

import hashlib
import pickle
import secrets
from contextlib import suppress
from typing import NamedTuple

from incsnap.binlog.slices import Slice
from incsnap.checkpoint.files import Files
from incsnap.errors import IncsnapError, StoreFailed

#: Least bytes of a slice that goes into a file: a local file costs 0.2 ms, a shared folder or an object store more.
_LEAST, _LEAST_SHARED = 256 << 10, 1 << 20
#: Name of the folder below incsnap's part of the checkpoint.
_SHARED = "slices"


class SliceFile(NamedTuple):
    """The place of a slice in a file."""

    folder: str
    name: str  #: path below `folder`
    #: SHA-256 of the file, hexadecimal; "" in a folder of the job's own. Others may write to a shared folder, and to
    #: unpickle a file runs code.
    digest: str


class SliceFiles:
    """The files with the slices of one batch, written by the planner.

    `folder`: a folder of the job's own; with `shared` incsnap's part of the checkpoint, which executors on other
    machines read.
    """

    def __init__(self, folder: str, *, shared: bool = False) -> None:
        self._folder = folder
        self._files = Files(folder)
        self._shared = shared
        self._names: list[str] = []
        if shared:  # files of a planner that was killed
            self._files.delete_folder(_SHARED)

    def forget(self) -> None:
        """Delete the files: their batch is done, or is planned again."""
        for name in self._names:
            with suppress(OSError, StoreFailed):
                self._files.delete(name)
        self._names.clear()

    def put(self, slice_: Slice) -> Slice | SliceFile:
        """Write the slice into a file and return its place.

        Return `slice_` itself if it is small or cannot be written.
        """
        if len(slice_.payload) < (_LEAST_SHARED if self._shared else _LEAST):
            return slice_
        name, digest = f"slice-{secrets.token_hex(8)}", ""
        if self._shared:
            name = f"{_SHARED}/{name}"
        self._names.append(name)
        try:
            if self._shared:
                content = pickle.dumps(slice_, protocol=5)
                # 1.2 GB/s on a core with instructions for it; BLAKE2 does 0.5 GB/s.
                digest = hashlib.sha256(content).hexdigest()
                self._files.write(name, content)
            else:
                self._files.write(name, lambda out: pickle.dump(slice_, out, protocol=5))
        except (OSError, StoreFailed):
            with suppress(OSError, StoreFailed):
                self._files.delete(name)
            return slice_
        return SliceFile(self._folder, name, digest)


def slice_of(where: Slice | SliceFile) -> Slice:
    """Return the slice that `put` was given. Raise IncsnapError if the file is gone or was changed.

    Spark then fails the batch, and the batch is planned again.
    """
    if isinstance(where, Slice):
        return where
    content = Files(where.folder).read(where.name)
    if content is None:
        raise IncsnapError(
            f"The slice {where.folder}/{where.name} is gone",
            "Its planner has ended, and the job goes on from its offset; or the folder is not the one that the driver"
            " sees: checkpoint.location must be on a file system that all machines share.",
        )
    if where.digest and hashlib.sha256(content).hexdigest() != where.digest:
        raise IncsnapError(
            f"The slice {where.folder}/{where.name} is not what the planner has written",
            "Somebody else writes to the checkpoint: only the job may.",
        )
    slice_: Slice = pickle.loads(content)
    return slice_
