"""The first Ctrl-C, which lets a command end cleanly."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def noted(stopping: threading.Event) -> Iterator[None]:
    """Set `stopping` at the first SIGINT or SIGTERM in the block. A second one has the effect that it had before."""

    def note(number: int, frame: FrameType | None) -> None:
        stopping.set()
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield
    finally:
        restore()
