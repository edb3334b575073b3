"""Temporary folders that a job owns while it lives. Later jobs remove those of a job that was killed.

A socket in the folder shows that the owner lives: the kernel closes the socket with its process, however that ends. A
file with the process id would not do, because another process may have that id by then.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
import tempfile
import time
from pathlib import Path


def listening(folder: Path, name: str) -> socket.socket:
    """Return a listening Unix socket `name` in a folder that `short_folder` has made. The socket marks the folder as in
    use.

    Other jobs remove a folder whose socket does not listen. So the socket is bound under another name, and renamed when
    it listens.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(folder / "new"))
    listener.listen(64)
    (folder / "new").rename(folder / name)
    return listener


def sweep(prefix: str, name: str, older_than: float = 0.0) -> None:
    """Remove temporary folders of killed jobs: nothing listens to the socket `name` in such a folder.

    `older_than`: seconds since the last write to the folder. Younger folders stay, because programs of a killed job may
    still end in order.
    """
    youngest = time.time() - older_than
    for folder in Path(tempfile.gettempdir()).glob(prefix + "*"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            if folder.stat().st_mtime > youngest:
                continue
            if probe.connect_ex(str(folder / name)) == errno.ECONNREFUSED:
                shutil.rmtree(folder, ignore_errors=True)


def short_folder(prefix: str) -> str:
    """Make a private folder whose path is short enough for a socket in it (104 bytes on some systems).

    Return its path.
    """
    folder = tempfile.mkdtemp(prefix=prefix)
    if len(folder) < 90:
        return folder
    os.rmdir(folder)
    return tempfile.mkdtemp(prefix=prefix, dir="/tmp")
