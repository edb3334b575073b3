"""The log of the job's processes: lines on stderr, libraries only from warnings on.

The stderr of Spark's Python processes reaches the driver's, but nobody has set up logging in them.
"""

from __future__ import annotations

import logging

from incsnap.monitoring.log_format import formatter

_NAMES = ("incsnap", "signals")


def set_up(level: int, log_format: str) -> None:
    """Once a process; does nothing where somebody has set logging up already."""
    if logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(log_format))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    for name in _NAMES:
        logging.getLogger(name).setLevel(level)
