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


def _setting(name: str, form: str) -> Callable[[_Command], _Command]:
    """Return the option for the setting `name`, whose value has this form."""
    return click.option(OPTIONS[name], metavar=form, callback=_not_empty, help="The same as this setting in FILE.")


def _not_empty(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Return the value of an option. Raise BadParameter if it is empty, as a shell's variable that is not set."""
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty. Give a value, or leave the option out.")
    return value


def _with_worker(command: _Command, *, folder: bool) -> _Command:
    @click.argument("file", type=click.Path(dir_okay=folder))
    @click.option(
        "--worker",
        type=click.Path(dir_okay=False),
        help="File of a Kafka Connect worker. Its brokers, converters and producer.* apply where FILE has none.",
    )
    @_setting("bootstrap.servers", "HOST:PORT,...")
    @_setting("checkpoint.location", "FOLDER")
    @wraps(command)
    def with_file(*, file: str, bootstrap_servers: str | None, checkpoint_location: str | None, **others: Any) -> Any:
        values = {"bootstrap.servers": bootstrap_servers, "checkpoint.location": checkpoint_location}
        options = {name: value for name, value in values.items() if value is not None}
        return command(file=JobFile(file, options), **others)

    return with_file
