"""Which start a checkpoint has announced last, and which checkpoint it is: a copy is another one.

start.json     ids of the starts that this checkpoint has announced: the newest, and the one before it
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import finish_beginning_again, kept_first_offset
from incsnap.checkpoint.location import is_local, own_part
from incsnap.checkpoint.planned import planned
from incsnap.checkpoint.status import newest_offset
from incsnap.config.object_store import is_object_store
from incsnap.config.settings import Settings

_NAME = "start.json"


@dataclass(frozen=True, slots=True)
class OwnCheckpoint:
    """What a start knows of its own checkpoint before it asks Kafka."""

    #: ``checkpoint.location``, absolute where it is a path.
    location: str
    #: Identity of what is locked; "" where nothing can be locked (hdfs:, gs:).
    lock: str
    #: Ids of the starts that this checkpoint has announced last.
    starts: tuple[str, ...]
    #: The job id; "" in a new checkpoint.
    job: str = ""
    #: Number of the newest batch that is planned.
    batch: int = 0
    #: How many buckets the job has; 0 in a new checkpoint.
    buckets: int = 0


def own_checkpoint(settings: Settings) -> OwnCheckpoint:
    """Return what the checkpoint of ``settings`` says. The caller holds its lock. Raise ``OffsetError``."""
    location = settings.checkpoint_location.rstrip("/")
    root = own_part(location)
    files = Files(root)
    finish_beginning_again(Files(location), files)
    newest = newest_offset(location) or kept_first_offset(files)
    plan = planned(files)
    if plan is not None and (newest is None or (plan.job_id == newest.job_id and plan.batch > newest.batch)):
        newest = plan
    if is_local(location):
        location = str(Path(location.removeprefix("file://")).absolute())
    return OwnCheckpoint(
        location,
        _lock_identity(settings, location),
        _starts(files),
        newest.job_id if newest is not None else "",
        newest.batch if newest is not None else 0,
        newest.layout.buckets if newest is not None else 0,
    )


def keep_start(files: Files, start: str, before: Sequence[str]) -> None:
    """Write down that the checkpoint is about to announce ``start``, behind the announced starts ``before``."""
    files.write(_NAME, json.dumps({"starts": [start, *before]}).encode(), durable=True)


def _starts(files: Files) -> tuple[str, ...]:
    content = files.read(_NAME)
    try:
        return tuple(map(str, json.loads(content.to_pybytes())["starts"])) if content is not None else ()
    except (ValueError, TypeError, KeyError):
        return ()  # torn: taken for a copy, whose start waits a moment


def _lock_identity(settings: Settings, location: str) -> str:
    """Return what a copy of the checkpoint has otherwise: host, path and inode of the lock; or bucket and store."""
    if is_object_store(location):
        return f"{settings.store.endpoint} {location}"
    if not is_local(location):
        return ""
    try:
        inode = os.stat(own_part(location) + "/lock").st_ino
    except OSError:
        return ""
    return f"{socket.gethostname()} {location} {inode}"
