"""A server that can be killed, started again and suspended, for tests of faults. It keeps its data and its port."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from lab.child_programs import Child, child


class Breakable:
    """A context manager that runs a server: `with` starts the server, and the end of the block kills it.

    `ready(child)` must return when the server answers.
    """

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
        """Start the server, also again after `kill`. Return when it answers."""
        started = self._life.enter_context(child(self._name, self._command, self._log))
        self._pid = started.pid
        self._ready(started)

    def kill(self) -> None:
        """Kill the server with SIGKILL. Its folder keeps what was written."""
        self._life.close()

    def suspend(self) -> None:
        """Stop the server's process with SIGSTOP: it keeps its connections and does not answer."""
        os.kill(self._pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a suspended server continue (SIGCONT)."""
        os.kill(self._pid, signal.SIGCONT)
