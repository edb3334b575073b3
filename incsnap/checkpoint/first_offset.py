"""A file with the offset that a job begins with.

Spark does not log this offset, and asks for it again to repeat the first batch.

    first-offset.json    the offset before the first batch
    begun-again.json     the first offset of a new job, while the new job replaces the old one
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import cache

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.planned_batch import forget_plan
from incsnap.checkpoint.progress import forget_progress
from incsnap.errors import OffsetError, SinkError
from incsnap.snapshot.offset import Offset

_FIRST = "first-offset.json"
_AGAIN = "begun-again.json"
#: Folders with files of batches by number. A new job uses the same numbers again.
_OF_BATCHES = ("windows", "discards", "control", "refused")


class CheckpointNotShared(SinkError):
    """An error: a machine of the cluster does not see the checkpoint."""

    hint = (
        "Put checkpoint.location on a file system that all machines see under this name; `incsnap check` asks each of"
        " them. The task is tried again on another one."
    )


@cache
def require_shared(root: str) -> None:
    """Raise CheckpointNotShared if this machine of a cluster does not see the checkpoint at `root`.

    A task calls this before it writes, because its machine may have joined after the check at the start. Files on the
    machine's own disk would be missed elsewhere, and the checkpoint would look damaged.
    """
    if not Files(root).exists(_FIRST):
        raise CheckpointNotShared(f"{socket.gethostname()} does not see the job's checkpoint at {root}")


def first_offset(root: str, make: Callable[[], Offset]) -> Offset:
    """Return the offset before the first batch, as stored in `root`. If there is none, make and store it."""
    files = Files(root)
    kept = kept_first_offset(files)
    if kept is None:
        kept = make()
        files.write_json(_FIRST, kept.dump(), durable=True)
    return kept


def kept_first_offset(files: Files) -> Offset | None:
    """Return the stored first offset, or None if no job has begun. Raise OffsetError if the file is damaged."""
    return _read(files, _FIRST)


def begin_again_at(checkpoint: Files, files: Files, first: Offset) -> None:
    """Replace the job of this checkpoint by a new one that begins at `first`.

    The new job has another `job_id`, so the batches that buckets have sent for the old job do not count for the new
    one. `checkpoint` is the whole folder, `files` is incsnap's part of it. If a crash interrupts the call,
    `finish_beginning_again` completes it.
    """
    files.write_json(_AGAIN, first.dump(), durable=True)
    finish_beginning_again(checkpoint, files)


def finish_beginning_again(checkpoint: Files, files: Files) -> None:
    """Complete an interrupted `begin_again_at`. Call it at each start, before anything else is read."""
    first = _read(files, _AGAIN)
    if first is None:
        return
    checkpoint.delete_folder("spark")
    for folder in _OF_BATCHES:
        files.delete_folder(folder)
    forget_plan(files)
    forget_progress(files)
    files.write_json(_FIRST, first.dump(), durable=True)
    files.delete(_AGAIN)


def _read(files: Files, name: str) -> Offset | None:
    """Return the offset in a file, or None. Raise OffsetError if the file is damaged."""
    try:
        content = files.read_json(name)
        return None if content is None else Offset.load(content)
    except ValueError as error:
        raise OffsetError(f"{files.path(name)} is damaged: {error}") from None
