"""The log of Spark's Python processes: their stderr reaches the driver's, but nobody has set up logging in them."""

from __future__ import annotations

import logging

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_NAMES = ("incsnap", "signals")


def set_up(level: int) -> None:
    """Once a process; does nothing where somebody has set logging up already."""
    if logging.getLogger().handlers:
        return
    logging.basicConfig(format=FORMAT, level=logging.WARNING)
    for name in _NAMES:
        logging.getLogger(name).setLevel(level)
