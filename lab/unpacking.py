"""Archives of servers, unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks a tar file, compressed or not, into ``folder``; members may not lead out of it where Python can tell:
    from 3.11.4 on (PEP 706). Debian 12 has 3.11.2, where ``extractall`` knows no ``filter``."""
    with tarfile.open(archive) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(folder)
