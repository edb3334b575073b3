"""A temporary folder for the data of one server. Each process also removes folders of killed processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from lab.free_port import ATTEMPTS, PortTaken

Address = TypeVar("Address")

# Short, and below the system's temporary folder: the path of a socket may have at most 107 characters (unix(7)).
_PREFIX = "incsnap-run-"
_OWNER = "owner.lock"


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """Create a folder, and remove it when the block ends."""
    _sweep()
    folder, owner = _owned_folder()
    with owner:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def on_free_ports(server: Callable[[Path], AbstractContextManager[Address]]) -> Iterator[Address]:
    """Run `server` in its own run folder, and yield its address.

    Start it again, up to `ATTEMPTS` times, if another process took one of its ports. Raise PortTaken if all attempts
    fail.
    """
    for attempt in range(ATTEMPTS):
        try:
            with run_folder() as folder, server(folder) as address:
                yield address
                return
        except PortTaken:
            if attempt == ATTEMPTS - 1:
                raise


def _owned_folder() -> tuple[Path, AbstractContextManager[object]]:
    """Create a folder and acquire its lock. Return both."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Another process may remove the folder before its lock is held. Then acquiring fails, and the loop creates a
        # new one.
        with contextlib.suppress(Timeout):
            return folder, _lock(folder).acquire()


def _sweep() -> None:
    """Remove folders of dead processes. The kernel has released the locks of those processes."""
    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(Timeout, OSError):
            # A folder without a lock file is skipped: its owner has just created it and will lock it.
            if folder.stat().st_uid == os.getuid() and (folder / _OWNER).exists():
                with _lock(folder):
                    shutil.rmtree(folder, ignore_errors=True)


def _lock(folder: Path) -> FileLock:
    """Return the folder's lock. The kernel releases it when its holder dies."""
    return FileLock(folder / _OWNER, blocking=False, fallback_to_soft=False)
