"""One line that says what is going on: to the log where somebody listens, else to standard error."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("incsnap.lab")


def tell(text: str) -> None:
    # A first fetch takes a minute; silence would look like a hang, and logging is silent until it is configured.
    if _log.isEnabledFor(logging.INFO) and _log.hasHandlers():
        _log.info(text)
    else:
        sys.stderr.write(f"incsnap: {text}\n")
        sys.stderr.flush()
