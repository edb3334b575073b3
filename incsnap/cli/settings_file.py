"""The argument and option that all commands about a job have: its file, and that of a Kafka Connect worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., object])


def settings_file(command: _Function) -> _Function:
    """Gives the command ``file`` and ``worker``."""
    file = click.argument("file", type=click.Path(dir_okay=False))
    worker = click.option(
        "--worker",
        type=click.Path(dir_okay=False),
        help="The file of a Kafka Connect worker: its brokers, converters and producer.* hold where FILE has none.",
    )
    return file(worker(command))
