"""The argument and the option that all commands about a job share: the job's file, and the file of a Connect worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., object])


def settings_file(command: _Function) -> _Function:
    """Add the parameters `file` and `worker` to a command."""
    return _with_worker(command, folder=False)


def settings_file_or_folder(command: _Function) -> _Function:
    """Add the parameters `file`, which may be a folder, and `worker` to a command."""
    return _with_worker(command, folder=True)


def _with_worker(command: _Function, *, folder: bool) -> _Function:
    file = click.argument("file", type=click.Path(dir_okay=folder))
    worker = click.option(
        "--worker",
        type=click.Path(dir_okay=False),
        help="File of a Kafka Connect worker. Its brokers, converters and producer.* apply where FILE has none.",
    )
    return file(worker(command))
