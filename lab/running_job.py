"""A child process that runs `incsnap run`: start it, wait for it, stop or kill it, read its log."""

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
from lab.child_programs import Child, child


class JobFailed(IncsnapError):
    """The error of a job that failed. Its text ends with the end of the job's log."""

    hint = "Look at the job's log above."


def end_of(log: Path, lines: int = 40) -> str:
    """Return the last lines of a log, or "" if there is no log."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""


class RunningJob:
    """A process of the job, from its start to its end. `running_job` starts it."""

    def __init__(self, started: Child, checkpoint: Path) -> None:
        self._child = started
        self._checkpoint = checkpoint

    @property
    def pid(self) -> int:
        """Return the process id of the job's driver, which leads the job's session."""
        return self._child.pid

    @property
    def began(self) -> float:
        """Return when the job was started, by `time.monotonic()`."""
        return self._child.began

    def exit_code(self) -> int | None:
        """Return the process's exit code, or None while it runs."""
        return self._child.exit_code()

    def log_tail(self, lines: int = 40) -> str:
        """Return the last lines of the job's log."""
        return end_of(self._child.log, lines)

    def wait_until(self, event: str, reached: Callable[[], bool], seconds: float = 240.0, every: float = 0.1) -> None:
        """Wait until `reached()` is true. `event` names it in errors; `every` is the pause between calls in seconds.

        Raise JobFailed if the job ends first, or after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not reached():
            code = self.exit_code()
            if code is not None:
                raise JobFailed(f"The job ended with code {code} before {event}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise JobFailed(f"{event}: not within {seconds:.0f} s; the job's log ends:\n{self.log_tail()}")
            time.sleep(every)

    def wait_until_streaming(self, seconds: float = 240.0) -> None:
        """Wait until the job knows where in the binlog it begins. Whatever is written afterwards will be streamed.

        Spark deletes the oldest offsets, so any offset is taken.
        """
        offsets = self._checkpoint / "spark" / "offsets"
        self.wait_until("its first batch", lambda: any(offsets.glob("[0-9]*")), seconds)

    def stop(self, seconds: float = 240.0) -> None:
        """Stop the job with SIGTERM and wait for its clean end. It waits for the running batch for up to 60 s.

        Raise JobFailed if the job does not end within `seconds`, or ends (or has ended) with an error.
        """
        if self.exit_code() is None:
            os.kill(self.pid, signal.SIGTERM)
            deadline = time.monotonic() + seconds
            while self.exit_code() is None and time.monotonic() < deadline:
                time.sleep(0.05)
        if self.exit_code() != 0:
            raise JobFailed(f"The job did not stop cleanly (code {self.exit_code()}):\n{self.log_tail()}")

    def kill(self, *, workers_too: bool = True) -> None:
        """Kill the job's process with SIGKILL, and with `workers_too` all other processes of its session as well.

        The JVM and Spark's Python processes have process groups of their own in the session. They may go on for a
        moment, as zombies that must be fenced.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if workers_too:
            kill_session(self.pid)
        while self.exit_code() is None:
            time.sleep(0.01)

    def remains(self) -> list[int]:
        """Return the ids of the job's processes that still run."""
        return session_pids(self.pid)

    def commands(self) -> list[tuple[str, list[str]]]:
        """Return name and command line of the job's processes, without those that end meanwhile."""
        commands = []
        for pid in self.remains():
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                commands.append((process.name(), process.cmdline()))
        return commands


#: Python's arguments that run `incsnap`, wherever it is installed.
INCSNAP = ("-c", "from incsnap.cli.main import main; main()")


@contextlib.contextmanager
def running_job(
    properties: Path, log: Path, checkpoint: Path, program: Sequence[str] = INCSNAP, arguments: Sequence[str] = ()
) -> Iterator[RunningJob]:
    """Run the job of the properties file until the block ends. Then kill all its remaining processes.

    `program` are Python's arguments in place of the usual command line. `arguments` are further ones for `incsnap run`.
    """
    command = [sys.executable, *program, "run", str(properties), *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with child("incsnap run", command, log, env=environment) as started:
        try:
            yield RunningJob(started, checkpoint)
        finally:
            kill_session(started.pid)


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    """Write a properties file and return its path. Backslashes are doubled, as the format requires."""
    lines = (f"{name}={value}".replace("\\", "\\\\") for name, value in settings.items())
    path.write_text("\n".join(lines) + "\n")
    return path


def kill_session(leader: int) -> None:
    """Kill every process of the session that `leader` began with SIGKILL, also if `leader` is gone."""
    while pids := session_pids(leader):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def session_pids(leader: int) -> list[int]:
    """Return the ids of living processes of the session that `leader` began."""
    return [pid for pid in psutil.pids() if _session_of(pid) == leader and is_alive(pid)]


def is_alive(pid: int) -> bool:
    """Whether the process `pid` exists and is no zombie."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0
