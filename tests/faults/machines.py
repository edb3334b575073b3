"""Rows of the machine: a full disk, processes that stand still, a clock that jumps."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from tests.faults import processes
from tests.faults.kills import Fault
from tests.faults.trial import Trial

#: Of the checkpoint's disk where it is filled.
DISK = "64m"
_BALLAST = "ballast"
_PARTS = (processes.PLANNER, processes.JVM, processes.DRIVER, processes.WORKER, processes.DAEMON, processes.ALL)


def may_mount() -> str:
    """Why no disk can be made here; "" where one can."""
    if os.getuid() != 0:
        return "only root can mount a small disk"
    return ""


def mount(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "incsnap-faults", str(folder)], check=True, timeout=60
    )


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True, timeout=60)


def disk_full(trial: Trial, number: int) -> None:
    """Not a byte is left for some seconds; then there is room again, and somebody starts the job if it has ended."""
    trial.reads()
    ballast = trial.play.checkpoint / _BALLAST
    deadline = time.monotonic() + trial.random.uniform(2.0, 6.0)
    try:
        with ballast.open("wb", buffering=0) as file:
            while time.monotonic() < deadline:
                # To the last byte, again and again: what the job deletes must not be room for it.
                for size in 1 << 20, 1 << 12, 1:
                    _fill(file.fileno(), size)
                time.sleep(0.01)
    finally:
        ballast.unlink()
    trial.may_end = True  # not without a word, but it may
    ended = trial.job.exit_code() is not None
    trial.done["job ended" if ended else "job went on by itself"] += 1


def _fill(handle: int, size: int) -> None:
    block = bytes(size)
    try:
        while os.write(handle, block) == size:
            pass
    except OSError:
        pass


def frozen(longest: float) -> Fault:
    def fault(trial: Trial, number: int) -> None:
        trial.reads()
        victim = _PARTS[number % len(_PARTS)]
        pids = trial.job.remains() if victim == processes.ALL else processes.parts(trial.job)[victim]
        processes.freeze(pids)
        try:
            time.sleep(longest)
        finally:
            processes.go_on(pids)
        trial.done[f"{victim} {longest:.0f} s"] += 1

    fault.__doc__ = "SIGSTOP of one part by turns, or of all; the others go on meanwhile as well as they can."
    return fault


def clock_jumps(trial: Trial, number: int) -> None:
    """The job's clock goes back and forth, by seconds, hours and days (``jumping_clock``)."""
    trial.by_time = False
    trial.reads()
    seconds = trial.random.choice((-1, 1)) * trial.random.choice((2.0, 45.0, 3_700.0, 90_000.0))
    (trial.play.folder / "clock").write_text(str(seconds))
    time.sleep(trial.random.uniform(0.5, 3.0))
    trial.done["back" if seconds < 0 else "forth"] += 1
