"""The command `incsnap status FILE`: it shows how the job is doing, from files beside the checkpoint.

The command also works on another machine than the job's, if the checkpoint can be read there.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import click
from rich.live import Live

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.status import read_status
from incsnap.cli import output
from incsnap.cli.many_jobs import BROKEN, ListedJob, checkpoints_below, listed, rank
from incsnap.cli.settings_file import settings_file_or_folder
from incsnap.cli.status_display import shown
from incsnap.config.frames import frame_settings
from incsnap.config.job_file import JobFile
from incsnap.config.load import checkpoint_of
from incsnap.config.object_store import is_object_store
from incsnap.errors import ConfigError, IncsnapError
from incsnap.monitoring.amounts import moment
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.liveness import Liveness, is_gone, liveness_of
from incsnap.monitoring.log_line import line
from incsnap.monitoring.status import FAILED, JobStatus, clock_ms, dump, load

_FOLLOW_SECONDS = 1.0
#: Jobs of a folder that are looked at at once.
_LOOKS = 64


@click.command()
@settings_file_or_folder
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON. Times: milliseconds since 1970.")
@click.option(
    "--follow", is_flag=True, help="Repeat until Ctrl-C or the end of the job. With --json: one line each second."
)
@click.option(
    "--table",
    metavar="DATABASE.TABLE",
    help="Show the DataFrame query that reads this table, not the job.",
)
@click.pass_context
def status(
    ctx: click.Context, file: JobFile, worker: str | None, as_json: bool, follow: bool, table: str | None
) -> None:
    """Show whether the job is alive, its lag, its rates and its snapshots.

    FILE may be a folder: each checkpoint below it is one line, the worst job first.

    Exit code 1: the job is dead, has failed, or has left no status.
    """
    if Path(file).is_dir():
        ctx.exit(_show_many(Path(file), as_json=as_json, follow=follow, table=table))
    if table is None:
        location, access = checkpoint_of(file, worker)
    else:
        settings = frame_settings({**file.options, "config": file.path, "table": table}).settings
        location, access = settings.checkpoint_location, settings.store
    if is_object_store(location):
        set_access(location, access)
    current = _read(location)
    if current is None:
        output.console().print("null" if as_json else _without_file(location), markup=False)
        ctx.exit(1)
    liveness = _liveness(current, location)
    if follow and liveness.alive:
        current, liveness = _follow(current, liveness, location, as_json=as_json)
    if as_json:
        output.console().print(_json(current, liveness), markup=False)
    else:
        output.console().print(shown(current, liveness, clock_ms()))
    if current.state == FAILED or not (liveness.alive or liveness.has_ended):
        ctx.exit(1)


def _show_many(folder: Path, *, as_json: bool, follow: bool, table: str | None) -> int:
    """Show the jobs whose checkpoints are below `folder`. Return 1 if one of them is dead or has failed, or none is.

    Raise ConfigError for an option that needs a single job.
    """
    if follow or table is not None:
        raise ConfigError("--follow and --table need the file of one job", "Name the job's file instead of the folder.")
    checkpoints, unreadable = checkpoints_below(folder)

    def look(location: str) -> ListedJob:
        name = os.path.relpath(location, folder)
        try:
            current = _read(location)
            return ListedJob(location, name, current, None if current is None else _liveness(current, location))
        except IncsnapError as error:
            return ListedJob(location, name, None, None, error.message)

    # At once: each job that seems dead is looked at again after a pause.
    with ThreadPoolExecutor(_LOOKS) as looks:
        jobs = list(looks.map(look, checkpoints))
    now_ms = clock_ms()
    if unreadable:
        names = f"{len(unreadable)} folders, such as {unreadable[0]}" if len(unreadable) > 1 else unreadable[0]
        output.warning(f"{names} cannot be read. Jobs below are not listed.")
    if as_json:
        for job in jobs:
            known = {"alive": None, "problem": job.problem}
            if job.status is not None and job.liveness is not None:
                known = json.loads(_json(job.status, job.liveness))
            output.console().print(json.dumps({"checkpoint": job.location, **known}), markup=False)
    elif jobs:
        output.console().print(listed(jobs, now_ms))
    else:
        output.console().print(f"No checkpoint below {folder} has a status.", markup=False)
    return 1 if not jobs or min(rank(job, now_ms) for job in jobs) <= BROKEN else 0


def _read(location: str) -> JobStatus | None:
    """Return the job's status, or None if there is no status file.

    Raise OffsetError if the file is of another release. Raise IncsnapError if it is damaged or cannot be read.
    """
    try:
        content = Files(own_part(location)).read(NAME)
    except OSError as error:
        raise IncsnapError(
            f"The checkpoint {location} cannot be read: {error.strerror or error}",
            "Set checkpoint.location to the job's folder, and run the command as a user who may read it.",
        ) from None
    if content is None:
        return None
    try:
        return load(json.loads(content.to_pybytes()))
    except ValueError as error:
        raise IncsnapError(
            f"{location}/incsnap/{NAME} is damaged: {error}",
            "A running job writes it again. If no job runs, delete it.",
        ) from None


def _without_file(location: str) -> str:
    """Return what the offset alone tells. Raise OffsetError if the checkpoint is not one of incsnap."""
    left = read_status(location)
    if left is None:
        return f"No batch has been written yet to the checkpoint {location}."
    return (
        f"There is no status file. A running job writes one every second. The job's last batch is {left.batch:,}, at"
        f" {left.position.file}:{left.position.pos:,}."
    )


def _liveness(current: JobStatus, location: str) -> Liveness:
    """Return whether the job is alive. Look a second time if it seems dead.

    A silent job may only have a clock that differs from this machine's. A job whose process is not here may run on
    another machine with the same name.
    """
    liveness = liveness_of(current, clock_ms())
    if liveness.has_ended or (liveness.alive and not is_gone(current)):
        return liveness
    time.sleep(current.every_ms / 1000 + 1.0)
    again = _read(location)
    if again is not None and again.written_ms != current.written_ms:
        return liveness_of(again, again.written_ms)
    return Liveness(False, current.written_ms)


def _follow(current: JobStatus, liveness: Liveness, location: str, *, as_json: bool) -> tuple[JobStatus, Liveness]:
    """Show the status until the job ends or the user presses Ctrl-C, and return the last one."""
    renewed, seen = time.monotonic(), current.written_ms

    def looked() -> bool:
        """Read the status again after a second, and return whether the job is alive."""
        nonlocal current, liveness, renewed, seen
        time.sleep(_FOLLOW_SECONDS)
        current = _read(location) or current
        if current.written_ms != seen:
            # Only by our own clock: the clock of the job's machine may differ.
            renewed, seen = time.monotonic(), current.written_ms
        liveness = liveness_of(current, current.written_ms + round((time.monotonic() - renewed) * 1000))
        return liveness.alive

    with suppress(KeyboardInterrupt):
        if as_json:
            output.console().print(_json(current, liveness), markup=False)
            while looked():
                output.console().print(_json(current, liveness), markup=False)
        elif not output.console().is_terminal:
            output.console().print(_line(current, liveness), markup=False)
            while looked():
                output.console().print(_line(current, liveness), markup=False)
        else:
            with Live(shown(current, liveness, clock_ms()), console=output.console(), auto_refresh=False) as live:
                while looked():
                    live.update(shown(current, liveness, current.written_ms), refresh=True)
                live.update("", refresh=True)
    return current, liveness


def _line(current: JobStatus, liveness: Liveness) -> str:
    """Return the status as one line, for a `--follow` whose output goes to a file or a pipe."""
    state = current.state if liveness.alive or liveness.has_ended else "dead"
    return f"{moment(current.written_ms)} {state}; {line(current, idle=True)}"


def _json(current: JobStatus, liveness: Liveness) -> str:
    """Return the status and the liveness as one line of JSON."""
    return json.dumps(
        {"alive": liveness.alive, "dead_since_ms": None if liveness.alive else liveness.since_ms, **dump(current)}
    )
