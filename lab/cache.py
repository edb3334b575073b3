"""A folder per fetched thing, complete or absent, shared by all processes of the user.

An entry is built beside its place under a file lock and then renamed, so whoever sees the name sees the whole. What
a build downloads stays in a folder of its own until the build has succeeded: an interrupted fetch goes on where it was.
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
    """``user_folders.cache_folder``, made when missing."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def entry(name: str, build: Callable[[Path, Path], None]) -> Path:
    """The entry ``name``; ``build(folder, downloads)`` fills the empty ``folder`` when it does not exist yet."""
    place = root() / name
    if place.is_dir():
        return place
    with _locked(root() / f"{name}.lock", name):
        if place.is_dir():  # Another process built it while we waited.
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
    """Bytes of all files below ``folder``, for a progress line; files that vanish meanwhile count nothing."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.lstat().st_size
    return total


def _locked(path: Path, product: str) -> AbstractContextManager[object]:
    """The lock, taken. The kernel lets go of it when its holder dies, so nothing stale can be left behind."""
    lock = FileLock(path, fallback_to_soft=False)
    try:
        return lock.acquire(blocking=False)
    except Timeout:
        tell(f"waiting for another process that is fetching {product}")
        return lock.acquire()
