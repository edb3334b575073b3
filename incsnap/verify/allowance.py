"""The resources that a comparison may use: it ends when it is told to, and leaves a running job its task slots."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


class VerificationStopped(Exception):
    """An error: the comparison was told to end, so there is no answer."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of a comparison. The default has none, for a session of its own."""

    stopping: threading.Event = field(default_factory=threading.Event)  #: set by another thread: end within a second
    tasks: int | None = None  #: tasks of Spark that may run at the same time; None: as many as there are slots
    #: Returns a block in which a job of Spark may run. Its beginning may wait.
    turn: Callable[[], AbstractContextManager[object]] = nullcontext
    #: Part of a core that may be used, on average. Time in which a job of Spark runs counts as processor time, also if
    #: the job waits for a busy processor or a server.
    share: float = 1.0

    def go_on(self) -> None:
        """Raise VerificationStopped if the comparison shall end."""
        if self.stopping.is_set():
            raise VerificationStopped

    @contextmanager
    def spark_job(self) -> Iterator[None]:
        """Run a job of Spark in the block, and then wait as long as the share demands.

        Raise VerificationStopped if the comparison shall end.
        """
        self.go_on()
        with self.turn():
            self.go_on()
            began = time.monotonic()
            yield
            took = time.monotonic() - began
        self.rest(took)

    @contextmanager
    def work(self) -> Iterator[None]:
        """Work on the calling thread in the block, and then wait as long as the share demands."""
        began = time.thread_time()
        yield
        self.rest(time.thread_time() - began)

    def steps(self, items: Iterable[T]) -> Iterator[T]:
        """Yield `items`. The making of each one is `work`."""
        left = iter(items)
        while True:
            with self.work():
                made = list(islice(left, 1))
            if not made:
                return
            yield made[0]

    def rest(self, used: float) -> None:
        """Wait after `used` seconds of processor time. Raise VerificationStopped if the comparison shall end."""
        if self.share < 1:
            self.sleep(used / self.share - used)

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`. Raise VerificationStopped if the comparison shall end."""
        self.stopping.wait(seconds)
        self.go_on()
