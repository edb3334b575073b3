"""What Spark's Python processes are called by ``ps`` and ``top``: all are forks of one process, with its command line.

Linux only, elsewhere nothing is done; the kernel keeps 15 characters of a name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

ZYGOTE, PLAN, PLANNER, TASKS, COMMITS, CHUNK = (
    "incsnap-zygote",
    "incsnap-plan",
    "incsnap-planner",
    "incsnap-tasks",
    "incsnap-commits",
    "incsnap-chunk",
)
_OF_MODULES = {
    "pyspark.sql.streaming.python_streaming_source_runner": PLANNER,
    "pyspark.worker": TASKS,
    "pyspark.sql.worker.python_streaming_sink_runner": COMMITS,
}


def of(arguments: Sequence[str]) -> str:
    """The name for a process ``python ARGUMENTS``: ``-m``, Spark's daemon or not, then the module that works."""
    modules = [word for word in arguments if word in _OF_MODULES]
    # The others say once, at the start, what the query looks like.
    return _OF_MODULES[modules[0]] if modules else PLAN


def take(name: str) -> None:
    """For the calling thread: called by the main thread, for the process. Forks and new threads begin with it."""
    with contextlib.suppress(OSError):
        Path("/proc/thread-self/comm").write_text(name)
