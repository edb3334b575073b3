"""A temporary folder for one server's data. Those of processes that were killed are swept by the next one."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TypeVar

from incsnap.sandbox.cache import taken
from incsnap.sandbox.free_port import ATTEMPTS, PortTaken

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


def _owned_folder() -> tuple[Path, IO[bytes]]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        owner = (folder / _OWNER).open("ab")
        # Between open and lock another process's sweep may have mistaken the folder for an orphan.
        if taken(owner) and folder.exists():
            return folder, owner
        owner.close()


def _sweep() -> None:
    """Remove folders whose owner is dead: the kernel has let go of the lock that the owner held."""
    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        # No lock file: its owner is between making the folder and locking it.
        with contextlib.suppress(OSError), (folder / _OWNER).open("rb") as owner:
            if folder.stat().st_uid == os.getuid() and taken(owner):
                shutil.rmtree(folder, ignore_errors=True)
