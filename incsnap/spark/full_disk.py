"""The error of a job whose disk is full, instead of the traceback of the task that has met it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from incsnap.checkpoint.location import is_local
from incsnap.errors import IncsnapError
from incsnap.monitoring.amounts import size

#: Numbers of the errors of a full disk, or of a quota that is used up.
FULL = (errno.ENOSPC, errno.EDQUOT)
#: How Python and Java say that.
_TEXTS = tuple(os.strerror(each) for each in FULL)
#: A disk with less free space is full, in bytes. A batch writes some files of a kilobyte.
_FULL_BYTES = 1 << 20


class DiskFull(IncsnapError):
    """An error: a disk that the job writes to has no space left. The job tries again until there is space."""

    hint = "Free space there, or make the disk larger. The job then goes on by itself from the same offset."


def disk_full(text: str, checkpoint_location: str) -> DiskFull | None:
    """Return the error to show instead of an error with this text; None if the text is not about a full disk."""
    if not any(each in text for each in _TEXTS):
        return None
    if not is_local(checkpoint_location):
        return DiskFull(f"no space left on a disk of this job: {checkpoint_location} or Spark's temporary folder")
    folder = Path(checkpoint_location.removeprefix("file://")).absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    state = os.statvfs(there)
    free = state.f_bavail * state.f_frsize
    if free < _FULL_BYTES or str(folder) in text:
        return DiskFull(f"no space left in checkpoint.location {checkpoint_location} ({size(free)} free)")
    return DiskFull(
        "no space left in Spark's temporary folder",
        "Free space there, or set SPARK_LOCAL_DIRS to a larger disk and start again. Meanwhile the job tries again.",
    )
