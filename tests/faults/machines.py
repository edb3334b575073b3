"""The rows of one machine's faults: a full disk, suspended processes, a clock that jumps."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from tests.faults import processes
from tests.faults.kills import Fault
from tests.faults.trial import Trial

#: Size of the checkpoint's disk in the row that fills it.
DISK = "64m"
_BALLAST = "ballast"
_PARTS = (processes.PLANNER, processes.JVM, processes.DRIVER, processes.WORKER, processes.DAEMON, processes.ALL)


def may_mount() -> str:
    """Return why no disk can be mounted here, or "" if one can."""
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
    """Fill the disk for some seconds, then free it. If the job has ended, it is started again."""
    trial.reads()
    ballast = trial.play.checkpoint / _BALLAST
    deadline = time.monotonic() + trial.random.uniform(2.0, 6.0)
    try:
        with ballast.open("wb", buffering=0) as file:
            while time.monotonic() < deadline:
                # Fill the disk to the last byte again and again, also the space that the job frees.
                for size in 1 << 20, 1 << 12, 1:
                    _fill(file.fileno(), size)
                time.sleep(0.01)
    finally:
        ballast.unlink()
    trial.may_end = True  # the job may end, with an error
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
    """Return the fault that suspends a part of the job, or all of it, for `longest` seconds."""

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
    """Move the job's clock back or forth, by seconds, hours or days (`jumping_clock`)."""
    trial.by_time = False
    trial.reads()
    seconds = trial.random.choice((-1, 1)) * trial.random.choice((2.0, 45.0, 3_700.0, 90_000.0))
    (trial.play.folder / "clock").write_text(str(seconds))
    time.sleep(trial.random.uniform(0.5, 3.0))
    trial.done["back" if seconds < 0 else "forth"] += 1
