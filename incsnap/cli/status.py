"""``incsnap status FILE``: how the job is doing, from what it keeps beside its checkpoint, also on another machine."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import click

from incsnap.cli import output
from incsnap.cli.settings_file import settings_file
from incsnap.config.frames import frame_settings
from incsnap.config.load import read
from incsnap.config.object_store import is_object_store
from incsnap.errors import IncsnapError
from incsnap.monitoring.liveness import Liveness, is_gone, liveness_of
from incsnap.monitoring.status import FAILED, JobStatus, clock_ms, dump, load

_FOLLOW_SECONDS = 1.0


@click.command()
@settings_file
@click.option("--json", "as_json", is_flag=True, help="For programs: every figure, times in milliseconds since 1970.")
@click.option(
    "--follow", is_flag=True, help="Show it until Ctrl-C, or until the job ends; with --json a line a second."
)
@click.option(
    "--table",
    metavar="DATABASE.TABLE",
    help='Of the query of spark.readStream.format("incsnap") that has this table, in place of the job.',
)
@click.pass_context
def status(ctx: click.Context, file: str, worker: str | None, as_json: bool, follow: bool, table: str | None) -> None:
    """Show whether the job lives, how far it is, and how fast. Exit code 1: it is dead, has failed, or has
    left no status."""
    if table is None:
        settings = read(file, worker).settings
    else:
        settings = frame_settings({"config": file, "table": table}).settings
    location = settings.checkpoint_location
    if is_object_store(location):
        from incsnap.checkpoint.object_store import reach

        reach(location, settings.store)
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
        from incsnap.cli.status_display import shown

        output.console().print(shown(current, liveness, clock_ms()))
    if current.state == FAILED or not (liveness.alive or liveness.has_ended):
        ctx.exit(1)


def _read(location: str) -> JobStatus | None:
    """Raises ``OffsetError`` where the file is of another release, ``IncsnapError`` where it is damaged, or not ours
    to read."""
    # pyarrow, which --help need not wait for.
    from incsnap.checkpoint.files import Files
    from incsnap.checkpoint.location import own_part
    from incsnap.monitoring.watch import NAME

    try:
        content = Files(own_part(location)).read(NAME)
    except OSError as error:
        raise IncsnapError(
            f"The checkpoint {location} cannot be read: {error.strerror or error}",
            "Set checkpoint.location to the job's folder, and ask as a user who may read it.",
        ) from None
    if content is None:
        return None
    try:
        return load(json.loads(content.to_pybytes()))
    except ValueError as error:
        raise IncsnapError(
            f"{location}/incsnap/{NAME} is damaged: {error}", "The running job renews it; else delete it."
        ) from None


def _without_file(location: str) -> str:
    """What the offset alone tells. Raises ``OffsetError`` where it is of something else."""
    from incsnap.checkpoint.status import read_status

    left = read_status(location)
    if left is None:
        return f"No batch has been written yet to the checkpoint {location}."
    return (
        f"There is no status file, which a running job renews every second; the job's last batch is {left.batch:,}, at"
        f" {left.position.file}:{left.position.pos:,}."
    )


def _liveness(current: JobStatus, location: str) -> Liveness:
    """A job that seems to be silent may only have another clock than this machine, and one whose process is not here
    may run elsewhere: it is looked at twice."""
    liveness = liveness_of(current, clock_ms())
    if liveness.has_ended or (liveness.alive and not is_gone(current)):
        return liveness
    time.sleep(current.every_ms / 1000 + 1.0)
    again = _read(location)
    if again is not None and again.written_ms != current.written_ms:
        return liveness_of(again, again.written_ms)
    return Liveness(False, current.written_ms)


def _follow(current: JobStatus, liveness: Liveness, location: str, *, as_json: bool) -> tuple[JobStatus, Liveness]:
    """Until the job ends or the user does. The last status."""
    renewed, seen = time.monotonic(), current.written_ms

    def looked() -> bool:
        nonlocal current, liveness, renewed, seen
        time.sleep(_FOLLOW_SECONDS)
        current = _read(location) or current
        if current.written_ms != seen:
            # By our own clock alone: that of the job's machine need not agree.
            renewed, seen = time.monotonic(), current.written_ms
        liveness = liveness_of(current, current.written_ms + round((time.monotonic() - renewed) * 1000))
        return liveness.alive

    with suppress(KeyboardInterrupt):
        if as_json:
            output.console().print(_json(current, liveness), markup=False)
            while looked():
                output.console().print(_json(current, liveness), markup=False)
        else:
            from rich.live import Live

            from incsnap.cli.status_display import shown

            with Live(shown(current, liveness, clock_ms()), console=output.console(), auto_refresh=False) as live:
                while looked():
                    live.update(shown(current, liveness, current.written_ms), refresh=True)
                live.update("", refresh=True)
    return current, liveness


def _json(current: JobStatus, liveness: Liveness) -> str:
    return json.dumps(
        {"alive": liveness.alive, "dead_since_ms": None if liveness.alive else liveness.since_ms, **dump(current)}
    )
