"""A folder per fetched thing, complete or absent, shared by all processes of the user.

An entry is built beside its place under a file lock and then renamed, so whoever sees the name sees the whole. What
a build downloads stays in a folder of its own until the build has succeeded: an interrupted fetch goes on where it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import platformdirs

from incsnap.sandbox.progress import tell


def place() -> Path:
    """``INCSNAP_CACHE``, else the user's cache folder, which may be missing."""
    return Path(os.environ.get("INCSNAP_CACHE") or platformdirs.user_cache_dir("incsnap")).absolute()


def root() -> Path:
    """The same; made when missing."""
    folder = place()
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


@contextlib.contextmanager
def _locked(path: Path, what: str) -> Iterator[None]:
    # The kernel lets go of the lock when its holder dies, so nothing stale can be left behind.
    with path.open("ab") as file:
        if not taken(file):
            tell(f"waiting for another process that is fetching {what}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def taken(file: IO[bytes]) -> bool:
    """Take the lock on ``file`` if it is free; say whether it is ours."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
