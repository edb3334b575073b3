"""Wait for a condition instead of sleeping for a guess."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def wait_until(condition: Callable[[], bool], seconds: float, every: float = 0.05) -> None:
    """:raises TimeoutError: the condition did not come true within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not true within {seconds} s")
        time.sleep(every)


def alive(pid: int) -> bool:
    """Is there a process ``pid`` that is more than a zombie?"""
    try:
        # proc(5): the state follows the name, which stands in parentheses.
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
