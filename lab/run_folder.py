"""A temporary folder for one server's data. Those of processes that were killed are swept by the next one."""

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

# Short, and below the system's temporary folder: a socket's path may have 107 characters at most (unix(7)).
_PREFIX = "incsnap-run-"
_OWNER = "owner.lock"


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """A new folder, removed when the block ends."""
    _sweep()
    folder, owner = _owned_folder()
    with owner:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def on_free_ports(server: Callable[[Path], AbstractContextManager[Address]]) -> Iterator[Address]:
    """What ``server`` yields, in a run folder of its own; it is begun anew where somebody took the ports it chose."""
    for attempt in range(ATTEMPTS):
        try:
            with run_folder() as folder, server(folder) as address:
                yield address
                return
        except PortTaken:
            if attempt == ATTEMPTS - 1:
                raise


def _owned_folder() -> tuple[Path, AbstractContextManager[object]]:
    """A new folder and its lock, taken."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Before the new file is locked, another process's sweep may take the folder for an orphan.
        with contextlib.suppress(Timeout):
            return folder, _lock(folder).acquire()


def _sweep() -> None:
    """Remove folders whose owner is dead: the kernel has let go of the lock that the owner held."""
    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(Timeout, OSError):
            # No lock file: its owner is between making the folder and locking it.
            if folder.stat().st_uid == os.getuid() and (folder / _OWNER).exists():
                with _lock(folder):
                    shutil.rmtree(folder, ignore_errors=True)


def _lock(folder: Path) -> FileLock:
    """The kernel lets go of it when its holder dies."""
    return FileLock(folder / _OWNER, blocking=False, fallback_to_soft=False)
