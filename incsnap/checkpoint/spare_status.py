"""A store of the status file that also writes while the disk is full.

Two spare files of 256 kB are reserved beside the status file. If no space is left, the status is written into the
larger one, which then takes the place of the status file. The file before becomes a spare one. That needs no space.

The status file that was written while there was space may be smaller than the next status. So one spare file would not
be enough.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

_SPARES, _OLD = ("status.spare", "status.spare2"), "status.old"
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
        """Reserve the spare files, unless they are there. Do nothing if the disk is full or the folder is missing."""
        for name in _SPARES:
            path = self._folder / name
            with suppress(OSError):
                if _size(path) < SPARE_BYTES:
                    path.touch()
                    # Not truncated: on a full disk a smaller file could not be reserved again. Not appended to: where
                    # the file system has no fallocate, the C library refuses that.
                    with path.open("r+b") as file:
                        os.posix_fallocate(file.fileno(), 0, SPARE_BYTES)

    def _write_in_place(self, name: str, content: bytes) -> None:
        old, path = self._folder / _OLD, self._folder / name
        spare = max((self._folder / each for each in _SPARES), key=_size)
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


def _size(path: Path) -> int:
    """Return the size of a file; -1 if there is none."""
    return path.stat().st_size if path.exists() else -1
