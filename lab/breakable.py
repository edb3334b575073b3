"""A server that can be killed, started again on its data and port, and held still: what faults are made of."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from incsnap.spark.child_programs import Child, child


class Breakable:
    """Started when its ``with`` begins, killed when it ends. ``ready(child)`` returns when the server answers."""

    def __init__(self, name: str, command: Sequence[str], log: Path, ready: Callable[[Child], None]) -> None:
        self._name, self._command, self._log, self._ready = name, command, log, ready
        self._life = ExitStack()
        self._pid = 0

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        """Again, after ``kill``; returns when it answers."""
        started = self._life.enter_context(child(self._name, self._command, self._log))
        self._pid = started.pid
        self._ready(started)

    def kill(self) -> None:
        """``kill -9``; what was written stays in its folder."""
        self._life.close()

    def suspend(self) -> None:
        """Stops it (SIGSTOP): it keeps its connections and says nothing."""
        os.kill(self._pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self._pid, signal.SIGCONT)
