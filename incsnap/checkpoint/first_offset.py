"""The offset that a job begins with, in a file: Spark does not log it, and asks again when the first batch is repeated.

first-offset.json
begun-again.json     while one job is taking the place of another: the first offset of the new one
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from functools import cache

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.planned import forget_plan
from incsnap.checkpoint.progress import forget_progress
from incsnap.errors import OffsetError, SinkError
from incsnap.snapshot.offset import Offset

_FIRST = "first-offset.json"
_AGAIN = "begun-again.json"
#: Beside the checkpoint, by number of the batch: another job has the same numbers.
_OF_BATCHES = ("windows", "discards", "control")


class CheckpointNotShared(SinkError):
    hint = (
        "Put checkpoint.location on a file system that all machines see under this name; `incsnap check` asks each of"
        " them. The task is tried again on another one."
    )


@cache
def require_shared(root: str) -> None:
    """Asked by a task on a cluster, before it writes there: the machine may have come after all were asked. What it
    wrote to a disk of its own would be missed elsewhere, and the checkpoint taken for damaged. Raises
    ``CheckpointNotShared``."""
    if not Files(root).exists(_FIRST):
        raise CheckpointNotShared(f"{socket.gethostname()} does not see the job's checkpoint at {root}")


def first_offset(root: str, make: Callable[[], Offset]) -> Offset:
    """The offset before the first batch, as kept in ``root``; made and kept when there is none."""
    files = Files(root)
    kept = kept_first_offset(files)
    if kept is None:
        kept = make()
        _write(files, _FIRST, kept)
    return kept


def kept_first_offset(files: Files) -> Offset | None:
    """The offset in the file; ``None`` where no job has begun. Raises ``OffsetError``."""
    return _read(files, _FIRST)


def begin_again_at(checkpoint: Files, files: Files, first: Offset) -> None:
    """A job that begins at ``first`` takes the place of the one that had this checkpoint. Its ``job_id`` is another,
    so what the buckets have sent of the old one says nothing of its batches.

    ``checkpoint``: the whole folder, ``files``: incsnap's part of it. Once this has begun, ``finish_beginning_again``
    brings it to its end, whatever crashes.
    """
    _write(files, _AGAIN, first)
    finish_beginning_again(checkpoint, files)


def finish_beginning_again(checkpoint: Files, files: Files) -> None:
    """Goes on where a crash has cut ``begin_again_at`` short; to be called at each start, before anything else is
    read."""
    first = _read(files, _AGAIN)
    if first is None:
        return
    checkpoint.delete_folder("spark")
    for folder in _OF_BATCHES:
        files.delete_folder(folder)
    forget_plan(files)
    forget_progress(files)
    _write(files, _FIRST, first)
    files.delete(_AGAIN)


def _read(files: Files, name: str) -> Offset | None:
    content = files.read(name)
    if content is None:
        return None
    try:
        return Offset.load(json.loads(content.to_pybytes()))
    except ValueError as error:
        raise OffsetError(f"{files.path(name)} is damaged: {error}") from None


def _write(files: Files, name: str, offset: Offset) -> None:
    files.write(name, json.dumps(offset.dump()).encode(), durable=True)
