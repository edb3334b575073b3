"""The cache of fetched programs, shared by all processes of the user. Each program has a folder, complete or absent.

A process builds an entry in a temporary folder under a file lock, and then renames the folder. So whoever sees the
final name sees the whole entry. Downloads stay in a folder of their own until the build has succeeded, so that an
interrupted fetch can continue.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock, Timeout

from incsnap.config.user_folders import cache_folder
from lab.progress import tell


def root() -> Path:
    """Return the folder `user_folders.cache_folder`. Create it if it is missing."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def entry(name: str, build: Callable[[Path, Path], None]) -> Path:
    """Return the folder of the entry `name`.

    If the entry does not exist yet, call `build(folder, downloads)`, which must fill the empty `folder`.
    """
    place = root() / name
    if place.is_dir():
        return place
    with _locked(root() / f"{name}.lock", name):
        if place.is_dir():  # Another process built the entry during the wait.
            return place
        unfinished, downloads = root() / f"{name}.unfinished", root() / f"{name}.downloads"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        downloads.mkdir(exist_ok=True)
        build(unfinished, downloads)
        unfinished.rename(place)
        shutil.rmtree(downloads, ignore_errors=True)
    return place


def bytes_below(folder: Path) -> int:
    """Return the bytes of all files below `folder`, for a progress line. Files that vanish meanwhile do not count."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.lstat().st_size
    return total


def _locked(path: Path, product: str) -> AbstractContextManager[object]:
    """Acquire and return the lock. The kernel releases it when its holder dies, so no stale lock can stay."""
    lock = FileLock(path, fallback_to_soft=False)
    try:
        return lock.acquire(blocking=False)
    except Timeout:
        tell(f"waiting for another process that is fetching {product}")
        return lock.acquire()
