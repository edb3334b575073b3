"""The log of the job's processes: lines on stderr, from libraries only warnings and above.

The stderr of Spark's Python processes reaches the driver's stderr, but nothing sets up logging in these processes.
"""

from __future__ import annotations

import logging

from incsnap.monitoring.log_format import formatter


def set_up(level: int, log_format: str) -> None:
    """Set up this process's log once. Do nothing if logging is already set up."""
    if logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(log_format))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    for name in ("incsnap", "signals"):
        logging.getLogger(name).setLevel(level)
