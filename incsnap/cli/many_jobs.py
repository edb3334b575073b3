"""The statuses of many jobs: one line for each checkpoint below a folder, the worst first."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from incsnap.checkpoint.location import own_part
from incsnap.cli.status_display import worth_showing
from incsnap.errors import shorten
from incsnap.monitoring.amounts import count, duration, moment
from incsnap.monitoring.gap_status import gap_line
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.liveness import Liveness, stalled
from incsnap.monitoring.status import FAILED, RETRYING, RUNNING, JobStatus
from incsnap.monitoring.verification_status import verification_line

#: Folders between the given one and a checkpoint, at most.
_DEPTH = 4
#: Folders inside a checkpoint: they have thousands of files and no other checkpoint.
_INSIDE = frozenset({"spark", "incsnap"})
#: Characters of a topic.prefix that are shown in any case.
_NAME_WIDTH = 30
#: How bad a job is: the first of these that holds, from the worst.
DEAD, BROKEN, HANGING, WAITING, SUSPICIOUS, WELL, OVER = range(7)
_COLORS = {DEAD: "bold red", BROKEN: "red", HANGING: "red", WAITING: "red", SUSPICIOUS: "yellow", WELL: "green"}


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job below a folder."""

    location: str  #: its checkpoint
    folder: str  #: its checkpoint, relative to the folder that was asked for
    status: JobStatus | None  #: None: its status cannot be read
    liveness: Liveness | None  #: None without a status
    problem: str = ""  #: why the status cannot be read


def checkpoints_below(folder: Path) -> tuple[list[str], list[str]]:
    """Return the checkpoints in `folder` and below it that have a status file, by name, and the unreadable folders.

    The status of a checkpoint may be unreadable too. Jobs below an unreadable folder are not known.
    """
    checkpoints: list[str] = []
    unreadable: list[str] = []

    def look(here: str, depth: int) -> None:
        has_status = _has_status(here)
        try:
            with os.scandir(here) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            # A member of `incsnap.status.group` may read the status of a checkpoint, and not list its folder.
            (checkpoints if has_status else unreadable).append(here)
            return
        # A folder above checkpoints may be called `incsnap`, and may be unreadable.
        if has_status or (has_status is None and _INSIDE.issubset(names)):
            checkpoints.append(here)
            names = [name for name in names if name not in _INSIDE]
        for name in names if depth < _DEPTH else ():
            look(os.path.join(here, name), depth + 1)

    look(str(folder), 0)
    return checkpoints, unreadable


def _has_status(folder: str) -> bool | None:
    """Return whether there is a status file in the checkpoint `folder`, or None if this user may not know."""
    try:
        os.stat(os.path.join(own_part(folder), NAME))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
    return True


def rank(job: ListedJob, now_ms: int) -> int:
    """Return how bad the job is, from `DEAD` to `OVER`: a job that has stopped in order comes last."""
    status, liveness = job.status, job.liveness
    if status is None or liveness is None or not (liveness.alive or liveness.has_ended):
        return DEAD
    if status.state == FAILED:
        return BROKEN
    if liveness.has_ended:
        return OVER
    if stalled(status, now_ms):
        return HANGING
    if status.state == RETRYING or (status.stream is not None and not status.stream.connected):
        return WAITING
    return SUSPICIOUS if status.state != RUNNING or status.snapshot.paused or _troubles(status, now_ms) else WELL


def _troubles(status: JobStatus, now_ms: int) -> list[str]:
    """Return why somebody should look at a job though it runs, the worst first."""
    stream, verification, gap = status.stream, status.verification, status.gap
    texts = []
    if stream is not None and stream.is_purged_soon(now_ms):
        texts.append(f"MySQL may purge {stream.needs_file} from {moment(stream.purge_not_before_ms or 0)} on")
    if gap is not None and (gap.is_open or gap.failure):
        texts.append(f"gap: {gap_line(gap)}")
    if verification is not None and verification.is_bad:
        texts.append(verification_line(verification))
    texts += [f"{each.table} {each.status}" for each in worth_showing(status.snapshot.finished) if not each.is_whole]
    texts += [f"keys of {each.table} were given up" for each in status.snapshot.tables if each.quarantined]
    return texts


def listed(jobs: list[ListedJob], now_ms: int) -> RenderableType:
    """Return the jobs for rich's console, one line each: the worst first, and of equal ones the longest lag first."""

    def order(job: ListedJob) -> tuple[int, int, str]:
        stream = job.status.stream if job.status is not None else None
        return rank(job, now_ms), -(stream.lag_ms if stream is not None else 0), job.location

    table = Table.grid(padding=(0, 2))
    longest = max((len(job.status.topic_prefix) for job in jobs if job.status is not None), default=1)
    for least in (min(longest, _NAME_WIDTH), 12, 24, 8):
        table.add_column(no_wrap=True, overflow="ellipsis", min_width=least)
    for job in sorted(jobs, key=order):
        style = _COLORS.get(rank(job, now_ms), "dim")
        name = job.status.topic_prefix if job.status is not None else "?"
        table.add_row(
            f"[bold]{escape(name)}",
            f"[{style}]{_state(job, now_ms)}",
            escape(_text(job, now_ms)),
            f"[dim]{escape(job.folder)}",
        )
    return table


def _state(job: ListedJob, now_ms: int) -> str:
    status, liveness = job.status, job.liveness
    if status is None or liveness is None:
        return "unreadable"
    if rank(job, now_ms) == DEAD:
        return f"dead since {moment(liveness.since_ms)}"
    if liveness.has_ended:
        return f"{status.state} since {moment(liveness.since_ms)}"
    return "stalled" if stalled(status, now_ms) else status.state


def _text(job: ListedJob, now_ms: int) -> str:
    """Return what is worth a line about the job. The lag of a job that does not run would be an old figure."""
    status, liveness = job.status, job.liveness
    if status is None or liveness is None:
        return shorten(job.problem, 120)
    failure = status.failure
    if not liveness.alive or status.state in (RETRYING, FAILED):
        return shorten(failure.message, 120) if failure is not None else ""
    parts = [f"lag {duration(status.stream.lag_ms / 1000)}"] if status.stream is not None else []
    snapshot = status.snapshot
    if snapshot.active:
        reading = len(snapshot.tables) + snapshot.waiting
        parts.append(f"snapshot of {count(reading)} tables{', paused' if snapshot.paused else ''}")
    return "; ".join([*parts, *_troubles(status, now_ms)])
