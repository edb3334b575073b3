"""The user's folders, as the operating system has them (https://platformdirs.readthedocs.io)."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """``INCSNAP_CACHE``, else the user's cache folder for incsnap; it may be missing."""
    return Path(os.environ.get("INCSNAP_CACHE") or platformdirs.user_cache_dir("incsnap")).absolute()


def checkpoint_folder(prefix: str) -> Path:
    """Where the checkpoint of the job with this ``topic.prefix`` is, unless the settings say where."""
    return platformdirs.user_state_path("incsnap") / (prefix or "unnamed")
