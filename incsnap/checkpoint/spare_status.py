"""A store of the status file that also writes while the disk is full.

A spare file of 256 kB is reserved beside the status file. If no space is left, the status is written into the spare
file, which then takes the place of the status file. The file before becomes the spare one. That needs no space.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

_SPARE, _OLD = "status.spare", "status.old"
#: More than a status that names as many tables, windows and notifications as it may, each with long names.
SPARE_BYTES = 1 << 18
#: The disk is full, or the user's quota is used up.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Store(Protocol):
    """The store that writes while there is space."""

    def write(self, name: str, content: bytes) -> None: ...


class SparedStatus:
    """A store of one small file in the local folder `root`. `store` writes the file while there is space."""

    def __init__(self, store: Store, root: str) -> None:
        self._store = store
        self._folder = Path(root.removeprefix("file://")).absolute()
        self._reserve()

    def write(self, name: str, content: bytes) -> None:
        """Write the file. Raise OSError or StoreFailed if that is not possible, also not without space."""
        try:
            self._store.write(name, content)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._write_in_place(name, content)
        else:
            self._reserve()

    def _reserve(self) -> None:
        """Reserve the spare file, unless it is there. Do nothing if the disk is full or the folder is missing."""
        path = self._folder / _SPARE
        with suppress(OSError):
            if path.exists() and path.stat().st_size >= SPARE_BYTES:
                return
            with path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, SPARE_BYTES)

    def _write_in_place(self, name: str, content: bytes) -> None:
        spare, old, path = self._folder / _SPARE, self._folder / _OLD, self._folder / name
        with spare.open("r+b") as file:
            # Blanks up to the old size: JSON may end with them, and the file keeps its blocks for the next time.
            file.write(content.ljust(os.fstat(file.fileno()).st_size))
        if not path.exists():
            os.replace(spare, path)
            return
        before = path.stat()
        os.chmod(spare, before.st_mode)
        os.chown(spare, before.st_uid, before.st_gid)
        with suppress(FileNotFoundError):
            old.unlink()
        os.link(path, old)
        os.replace(spare, path)
        os.replace(old, spare)
