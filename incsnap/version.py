"""The version of incsnap. `setup.cfg` reads it here; this module imports nothing, so every package may import it."""

from __future__ import annotations

__version__ = "0.1.0"
