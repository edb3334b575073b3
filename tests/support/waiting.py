"""A wait for a condition, in place of a fixed sleep."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds that a test waits for an event. It decides nothing: it is long enough on the slowest machine, and an event
#: that is later never comes. (After 600 s a test's own limit ends it with all stacks.)
PATIENCE_SECONDS = 240.0


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS, every: float = 0.05) -> None:
    """Wait until the condition is true. Raise TimeoutError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not true within {seconds} s")
        time.sleep(every)
