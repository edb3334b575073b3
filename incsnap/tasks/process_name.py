"""The names of Spark's Python processes in `ps` and `top`. All are forks of one process and share its command line.

Only Linux has such names; elsewhere nothing is done. The kernel keeps 15 characters of a name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

ZYGOTE, PLAN, PLANNER = "incsnap-zygote", "incsnap-plan", "incsnap-planner"
TASKS, COMMITS, CHUNK = "incsnap-tasks", "incsnap-commits", "incsnap-chunk"
_OF_MODULES = {
    "pyspark.sql.streaming.python_streaming_source_runner": PLANNER,
    "pyspark.worker": TASKS,
    "pyspark.sql.worker.python_streaming_sink_runner": COMMITS,
}


def of(arguments: Sequence[str]) -> str:
    """Return the name for a process that runs `python` with these arguments.

    The first argument that is in `_OF_MODULES` decides. The module of Spark's daemon may stand before it. Without such
    an argument return `incsnap-plan`: Spark's other modules run when the query starts, and report its plan.
    """
    modules = [word for word in arguments if word in _OF_MODULES]
    # All other modules run once, when the query starts, and report its plan.
    return _OF_MODULES[modules[0]] if modules else PLAN


def take(name: str) -> None:
    """Give the calling thread a name.

    For the main thread this is the name of the process. Forks and new threads inherit it.
    """
    with contextlib.suppress(OSError):
        Path("/proc/thread-self/comm").write_text(name)
