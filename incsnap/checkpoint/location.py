"""Where a checkpoint is. Nothing heavy is imported here: the start asks before it has PyArrow."""

from __future__ import annotations

from urllib.parse import urlparse


def is_local(location: str) -> bool:
    """Whether the checkpoint is a path of this machine's file system."""
    return urlparse(location).scheme in ("", "file")


def own_part(location: str) -> str:
    """Where incsnap keeps what Spark's part of the checkpoint does not: windows, discards, counters, the lock."""
    return location.rstrip("/") + "/incsnap"
