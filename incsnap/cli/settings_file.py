"""The argument and the options that all commands about a job share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from incsnap.config.job_file import OPTIONS, JobFile

_Command = Callable[..., Any]


def settings_file(command: _Command) -> _Command:
    """Add the parameters `file`, a `JobFile`, and `worker` to a command."""
    return _with_worker(command, folder=False)


def settings_file_or_folder(command: _Command) -> _Command:
    """Add the parameters `file`, a `JobFile` which may be a folder, and `worker` to a command."""
    return _with_worker(command, folder=True)


def _with_worker(command: _Command, *, folder: bool) -> _Command:
    @click.argument("file", type=click.Path(dir_okay=folder))
    @click.option(
        "--worker",
        type=click.Path(dir_okay=False),
        help="File of a Kafka Connect worker. Its brokers, converters and producer.* apply where FILE has none.",
    )
    @click.option(OPTIONS["bootstrap.servers"], metavar="HOST:PORT,...", help="The same as this setting in FILE.")
    @click.option(OPTIONS["checkpoint.location"], metavar="FOLDER", help="The same as this setting in FILE.")
    @wraps(command)
    def with_file(*, file: str, bootstrap_servers: str | None, checkpoint_location: str | None, **others: Any) -> Any:
        values = {"bootstrap.servers": bootstrap_servers, "checkpoint.location": checkpoint_location}
        options = {name: value for name, value in values.items() if value is not None}
        return command(file=JobFile(file, options), **others)

    return with_file
