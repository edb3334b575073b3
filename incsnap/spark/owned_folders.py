"""Folders for temporary files that a job owns while it lives, and that later jobs remove when it was killed.

A socket in the folder says who lives: the kernel closes it with the process, whatever ended that one. A file with the
process's number would not do: the number may be another's by then.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import time
from pathlib import Path


def listening(folder: Path, name: str) -> socket.socket | None:
    """A socket ``name`` in the folder; None where its path is too long for one. Under that name it listens from the
    first moment: a folder whose socket does not is swept away by other jobs."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(folder / "new"))
    except OSError:
        listener.close()
        return None
    listener.listen(64)
    (folder / "new").rename(folder / name)
    return listener


def sweep(prefix: str, name: str, older_than: float = 0.0) -> None:
    """Removes folders for temporary files that killed jobs have left: nobody listens to the socket ``name`` in them.

    ``older_than``: seconds since the folder was last written to, for what a killed job had begun and that still ends in
    order.
    """
    youngest = time.time() - older_than
    for folder in Path(tempfile.gettempdir()).glob(prefix + "*"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            if folder.stat().st_mtime > youngest:
                continue
            try:
                probe.connect(str(folder / name))
            except ConnectionRefusedError:
                shutil.rmtree(folder, ignore_errors=True)
