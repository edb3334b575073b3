"""`incsnap run` as a child: started, waited for, stopped cleanly or killed, its log at hand."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from incsnap.errors import IncsnapError
from incsnap.spark.child_programs import Child, child


class JobFailed(IncsnapError):
    """``str`` ends with the end of the job's log."""

    hint = "Look at the job's log above."


def end_of(log: Path, lines: int = 40) -> str:
    """The last lines of a log; "" where there is none."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""


class RunningJob:
    """One life of the job; see ``running_job``."""

    def __init__(self, started: Child, checkpoint: Path) -> None:
        self._child = started
        self._checkpoint = checkpoint

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def began(self) -> float:
        """When it was started, of ``time.monotonic``."""
        return self._child.began

    def exit_code(self) -> int | None:
        """How it has ended; None while it runs."""
        return self._child.exit_code()

    def log_tail(self, lines: int = 40) -> str:
        return end_of(self._child.log, lines)

    def wait_until(self, event: str, reached: Callable[[], bool], seconds: float = 240.0, every: float = 0.1) -> None:
        """:raises JobFailed: the job ended or the time passed before ``reached`` said yes."""
        deadline = time.monotonic() + seconds
        while not reached():
            code = self.exit_code()
            if code is not None:
                raise JobFailed(f"The job ended with code {code} before {event}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise JobFailed(f"{event}: not within {seconds:.0f} s; the job's log ends:\n{self.log_tail()}")
            time.sleep(every)

    def wait_until_streaming(self, seconds: float = 240.0) -> None:
        """Waits until the job knows where in the binlog it begins: what is written then will be streamed."""
        first = self._checkpoint / "spark" / "offsets" / "0"
        self.wait_until("its first batch", first.exists, seconds)

    def stop(self, seconds: float = 60.0) -> None:
        """SIGTERM, and its clean end. :raises JobFailed: it had ended before, does not end, or ends with an error."""
        if self.exit_code() is None:
            os.kill(self.pid, signal.SIGTERM)
            deadline = time.monotonic() + seconds
            while self.exit_code() is None and time.monotonic() < deadline:
                time.sleep(0.05)
        if self.exit_code() != 0:
            raise JobFailed(f"The job did not stop cleanly (code {self.exit_code()}):\n{self.log_tail()}")

    def kill(self, *, workers_too: bool = True) -> None:
        """``kill -9`` of the job's process group; with ``workers_too`` also of Spark's Python workers.

        Those have a group of their own (in the same session) and may go on for a moment: zombies that must be fenced.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if workers_too:
            kill_session(self.pid)
        while self.exit_code() is None:
            time.sleep(0.01)

    def remains(self) -> list[int]:
        """Processes of the job that still run."""
        return session_pids(self.pid)


#: What `incsnap` is, wherever it is installed.
INCSNAP = ("-c", "from incsnap.cli.main import main; main()")


@contextlib.contextmanager
def running_job(
    properties: Path, log: Path, checkpoint: Path, program: Sequence[str] = INCSNAP, arguments: Sequence[str] = ()
) -> Iterator[RunningJob]:
    """Run the job of the properties file; whatever is left of it is killed when the block ends.

    ``program``: Python's arguments in place of the command line's own start; ``arguments``: more for ``incsnap run``.
    """
    command = [sys.executable, *program, "run", str(properties), *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with child("incsnap run", command, log, env=environment) as started:
        try:
            yield RunningJob(started, checkpoint)
        finally:
            kill_session(started.pid)


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    """A properties file; backslashes are doubled as the format wants it."""
    lines = (f"{name}={value}".replace("\\", "\\\\") for name, value in settings.items())
    path.write_text("\n".join(lines) + "\n")
    return path


def kill_session(leader: int) -> None:
    """``kill -9`` of every process of the session that ``leader`` began, also when the leader is gone."""
    while pids := session_pids(leader):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def session_pids(leader: int) -> list[int]:
    """Living processes of the session that ``leader`` began."""
    return [pid for pid in psutil.pids() if _session_of(pid) == leader and is_alive(pid)]


def is_alive(pid: int) -> bool:
    """Is there a process ``pid`` that is more than a zombie?"""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0
