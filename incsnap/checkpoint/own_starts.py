"""The identity of a checkpoint, and the starts that it has announced. A copy of a checkpoint has another identity.

The file `start.json` has the ids of starts that this checkpoint has announced: the newest one, then the one that owned
the prefix before, then earlier ones.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import finish_beginning_again, kept_first_offset
from incsnap.checkpoint.handed_back import refuse_handed_back
from incsnap.checkpoint.location import is_local, own_part
from incsnap.checkpoint.planned_batch import planned_end
from incsnap.checkpoint.status import newest_offset
from incsnap.checkpoint.taken_over import taken_over
from incsnap.config.object_store import is_object_store
from incsnap.config.settings import Settings

_NAME = "start.json"


@dataclass(frozen=True, slots=True)
class OwnCheckpoint:
    """The facts about its own checkpoint that a start has before it asks Kafka."""

    location: str  #: `checkpoint.location`, absolute if it is a path
    lock: str  #: identity of what is locked; "" if nothing can be locked (hdfs:, gs:)
    starts: tuple[str, ...]  #: ids of starts that this checkpoint has announced, the newest one first
    job: str = ""  #: job id; "" in a new checkpoint
    batch: int = 0  #: number of the newest planned batch
    buckets: int = 0  #: how many buckets the job has; 0 in a new checkpoint
    continues_connector: bool = False  #: whether a new job begins at the place of a connector (`incsnap takeover`)


def own_checkpoint(settings: Settings) -> OwnCheckpoint:
    """Return the facts about the checkpoint of `settings`.

    The caller holds its lock. Raise OffsetError if it is damaged, and ConfigError if it was handed back to a connector.
    """
    location = settings.checkpoint_location.rstrip("/")
    root = own_part(location)
    files = Files(root)
    refuse_handed_back(files)
    finish_beginning_again(Files(location), files)
    newest = newest_offset(location) or kept_first_offset(files)
    plan = planned_end(files)
    if plan is not None and (newest is None or (plan.job_id == newest.job_id and plan.batch > newest.batch)):
        newest = plan
    location = announced_location(settings)
    return OwnCheckpoint(
        location,
        _lock_identity(settings, location),
        _starts(files),
        newest.job_id if newest is not None else "",
        newest.batch if newest is not None else 0,
        newest.layout.buckets if newest is not None else 0,
        taken_over(files) is not None,
    )


def announced_location(settings: Settings) -> str:
    """Return `checkpoint.location` as a start announces it: absolute if it is a path."""
    location = settings.checkpoint_location.rstrip("/")
    return str(Path(location.removeprefix("file://")).absolute()) if is_local(location) else location


def keep_start(files: Files, start: str, before: Sequence[str]) -> None:
    """Record that the checkpoint is about to announce `start`. `before` are the starts that it announced before."""
    files.write_json(_NAME, {"starts": [start, *before]}, durable=True)


def _starts(files: Files) -> tuple[str, ...]:
    try:
        content = files.read_json(_NAME)
        return tuple(map(str, content["starts"])) if content is not None else ()
    except (ValueError, TypeError, KeyError):
        return ()  # torn: treated like a copy, whose start waits a moment


def _lock_identity(settings: Settings, location: str) -> str:
    """Return a text that differs for a copy of the checkpoint: host, path and inode of the lock, or store and
    bucket."""
    if is_object_store(location):
        return f"{settings.store.endpoint} {location}"
    if not is_local(location):
        return ""
    try:
        inode = os.stat(own_part(location) + "/lock").st_ino
    except OSError:
        return ""
    return f"{socket.gethostname()} {location} {inode}"
