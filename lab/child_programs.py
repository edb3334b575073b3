"""Child programs that never outlive this process: a `with` block ends them, and so does the kernel.

The package `lab` starts servers and jobs for tests in this way.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from incsnap.errors import ServerUnreachable

_PARENT_DEATH = str(Path(__file__).with_name("parent_death.py"))
_LOG_LINES = 15
#: Seconds for a killed program to end. It is gone at once, unless it hangs in the kernel.
_KILLED_SECONDS = 60


class Child:
    """A running program. Both its outputs go to `log`. `began`: its start, in seconds of `time.monotonic`."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path, began: float) -> None:
        self.name = name
        self.began = began
        self.log = log
        self._popen = popen

    @property
    def pid(self) -> int:
        return self._popen.pid

    def exit_code(self) -> int | None:
        """Return the exit code; None while the program runs."""
        return self._popen.poll()

    def stop(self) -> None:
        """Kill the program and wait until it is gone.

        Nothing that it has written is needed, so it is not asked to end cleanly.
        """
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait(_KILLED_SECONDS)

    def last_words(self) -> str:
        """Return the last lines of the program's log, for an error message."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        return "\n".join(lines[-_LOG_LINES:])


@contextlib.contextmanager
def child(name: str, command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None) -> Iterator[Child]:
    """Start `command`. It is stopped when the block ends, and when this process dies."""
    with log.open("ab") as output:
        began = time.monotonic()
        popen = _starter().start(command, output.fileno(), env)
    started = Child(name, popen, log, began)
    try:
        yield started
    finally:
        started.stop()


def run(
    name: str,
    command: Sequence[str],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    every_seconds: float = 5.0,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Run `command` to its end, and call `meanwhile` every `every_seconds`.

    Raise ServerUnreachable if its exit code is not 0.
    """
    with child(name, command, log, env=env) as program:
        next_call = time.monotonic() + every_seconds
        while (code := program.exit_code()) is None:
            time.sleep(0.02)
            if time.monotonic() >= next_call:
                meanwhile()
                next_call = time.monotonic() + every_seconds
        if code != 0:
            raise ServerUnreachable(
                f"{name} ended with code {code}:\n{program.last_words()}",
                "Read the lines above. Or name servers of your own by INCSNAP_MYSQL and INCSNAP_KAFKA.",
            )


class _Starter:
    """The one thread that starts children.

    The kernel sends the death signal when the *thread* that forked ends, not the process (prctl(2)). A server that a
    short-lived thread starts would die with that thread. This thread lives as long as the process.
    """

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[tuple[Future[subprocess.Popen[bytes]], list[str], int, dict[str, str] | None]]
        self._requests = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="incsnap-starter", daemon=True).start()

    def start(self, command: Sequence[str], output: int, env: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
        """Start the command in the thread of this object, and return its process. Raise OSError if that fails."""
        answer: Future[subprocess.Popen[bytes]] = Future()
        self._requests.put((answer, list(command), output, None if env is None else dict(env)))
        return answer.result()

    def _serve(self) -> None:
        while True:
            answer, command, output, env = self._requests.get()
            try:
                answer.set_result(
                    subprocess.Popen(
                        [sys.executable, "-I", "-S", _PARENT_DEATH, str(os.getpid()), *command],
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        env=env,
                        # The child has a session of its own: Ctrl-C in the terminal reaches this process only, which
                        # stops the servers in order.
                        start_new_session=True,
                    )
                )
            except OSError as error:
                answer.set_exception(error)


_lock = threading.Lock()
_the_starter: _Starter | None = None


def _starter() -> _Starter:
    global _the_starter
    with _lock:
        if _the_starter is None:
            _the_starter = _Starter()
        return _the_starter


def _forget_starter() -> None:
    global _the_starter, _lock
    _lock, _the_starter = threading.Lock(), None


# A forked process inherits the object but not its thread.
os.register_at_fork(after_in_child=_forget_starter)
