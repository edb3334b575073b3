"""The location of a checkpoint.

The module imports nothing heavy, because the start needs it before PyArrow is loaded.
"""

from __future__ import annotations

from urllib.parse import urlparse


def is_local(location: str) -> bool:
    """Whether the checkpoint is a path of this machine's file system."""
    return urlparse(location).scheme in ("", "file")


def own_part(location: str) -> str:
    """Return incsnap's part of the checkpoint: windows, discards, counters and the lock. The rest is Spark's."""
    return location.rstrip("/") + "/incsnap"
