"""Wait for a condition instead of sleeping for a guess."""

from __future__ import annotations

import time
from collections.abc import Callable

#: For which a test waits for what must come. It decides nothing: on the slowest machine it is long enough, and what
#: has not come by then never does. (A test's own limit, after which it is ended with all stacks, is 600 s.)
PATIENCE_SECONDS = 240.0


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS, every: float = 0.05) -> None:
    """:raises TimeoutError: the condition did not come true within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not true within {seconds} s")
        time.sleep(every)
