"""The user's cache folder by the rules of the operating system (https://platformdirs.readthedocs.io)."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Return the folder `INCSNAP_CACHE`, or else the user's cache folder for incsnap. The folder may not exist."""
    return Path(os.environ.get("INCSNAP_CACHE") or platformdirs.user_cache_dir("incsnap")).absolute()
