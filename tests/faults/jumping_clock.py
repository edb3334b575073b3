"""``python -m tests.faults.jumping_clock FILE run PROPERTIES``: incsnap, in a world whose time FILE moves.

All of the job's Python processes are forked from this one, so all see it; the JVM, librdkafka, MySQL and Kafka do
not. What a jump can harm is seen all the same: Spark, librdkafka and incsnap measure their waits by a clock that does
not jump; the calendar's time is put into records, notifications and manifests, and held against the binlog's.
(libfaketime would move the JVM's clock too. It is not among what the tests install.)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def jump(file: str) -> None:
    """``time.time`` and ``time.time_ns`` are so many seconds off as ``file`` says."""
    real, real_ns = time.time, time.time_ns

    def seconds() -> float:
        try:
            with open(file) as opened:
                return float(opened.read() or 0)
        except (OSError, ValueError):
            return 0.0

    moved: Callable[[], float] = lambda: real() + seconds()  # noqa: E731
    moved_ns: Callable[[], int] = lambda: real_ns() + int(seconds() * 1e9)  # noqa: E731
    time.time, time.time_ns = moved, moved_ns


if __name__ == "__main__":
    jump(sys.argv.pop(1))
    from incsnap.cli.main import main

    main()
