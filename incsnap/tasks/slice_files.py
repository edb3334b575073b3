"""Slices of the binlog by way of a file, where the tasks run on the planner's machine.

Spark copies what a task is given four times through the JVM's heap: from the planner's pipe, into the stage's
partitions, into the task, out of it. For 320 MB of binlog, a million changes of a backlog, that was 1.3 of the 2.7 GB
that the JVM allotted in all, and a full collection of 110 ms in every batch. A file that is read and deleted within the
second stays in the page cache. On a cluster the slice travels inside the part.
"""

from __future__ import annotations

import pickle
import secrets
from contextlib import suppress
from pathlib import Path

from incsnap.binlog.slices import Slice
from incsnap.errors import IncsnapError

#: Bytes from which a file is worth its 0.2 ms.
_LEAST = 256 << 10


class SliceFiles:
    """The planner's: ``folder`` is the job's own and goes with it; "" keeps all slices in their parts."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder) if folder else None
        self._files: list[Path] = []

    def forget(self) -> None:
        """The batch that they were written for is done, or is planned again."""
        for file in self._files:
            file.unlink(missing_ok=True)
        self._files.clear()

    def put(self, slice_: Slice) -> Slice | str:
        """The file's name; or ``piece`` itself, where it is small, or the disk is full."""
        if self._folder is None or len(slice_.payload) < _LEAST:
            return slice_
        file = self._folder / f"slice-{secrets.token_hex(8)}"
        self._files.append(file)
        try:
            with file.open("xb") as out:
                pickle.dump(slice_, out, protocol=5)
        except OSError:
            with suppress(OSError):
                file.unlink(missing_ok=True)
            return slice_
        return str(file)


def slice_of(where: Slice | str) -> Slice:
    """What ``put`` was given. Raises ``IncsnapError`` when the file is gone; the batch is planned again then."""
    if isinstance(where, Slice):
        return where
    try:
        with Path(where).open("rb") as file:
            slice_: Slice = pickle.load(file)
    except FileNotFoundError:
        raise IncsnapError(
            f"The slice {where} is gone", "Its planner has ended; the job goes on from its offset."
        ) from None
    return slice_
