"""The program `python -m tests.faults.jumping_clock FILE run PROPERTIES`: incsnap with a clock that FILE moves.

All Python processes of the job are forked from this one, so all have the moved clock. The JVM, librdkafka, MySQL and
Kafka do not. A jump can still do its harm. Spark, librdkafka and incsnap measure waits by a clock that does not jump.
But records, notifications and manifests contain the calendar's time, which is compared with the binlog's time.

libfaketime would also move the JVM's clock, but the tests do not install it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def jump(file: str) -> None:
    """Move `time.time` and `time.time_ns` by the number of seconds in `file`."""
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
