"""Progress lines of the lab: to the log if it is configured, else to stderr."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("incsnap.lab")


def tell(text: str) -> None:
    """Report `text` to the log at level INFO if somebody reads it there, else to stderr."""
    # A first fetch takes a minute and silence would look like a hang. Without configuration, logging is silent.
    if _log.isEnabledFor(logging.INFO) and _log.hasHandlers():
        _log.info(text)
    else:
        sys.stderr.write(f"incsnap: {text}\n")
        sys.stderr.flush()
