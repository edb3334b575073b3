"""Unpacking of tar archives."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar file, compressed or not, into `folder`.

    Members that lead out of the folder are refused from Python 3.11.4 on (PEP 706). Debian 12 has 3.11.2, whose
    `extractall` has no `filter`.
    """
    with tarfile.open(archive) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(folder)
