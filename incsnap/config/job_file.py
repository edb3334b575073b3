"""The file of a job, with the settings that the command line gives in place of the file's."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

StrPath: TypeAlias = str | os.PathLike[str]

#: Settings that a command line may give, with their options. A connector's file has neither of them.
OPTIONS = {"bootstrap.servers": "--bootstrap-servers", "checkpoint.location": "--checkpoint-location"}


@dataclass(frozen=True, slots=True)
class JobFile:
    """The path of a job's file, with settings of the command line."""

    path: str  #: as the user has typed it
    options: Mapping[str, str]  #: name of a setting, one of `OPTIONS` -> value

    def __fspath__(self) -> str:
        """Return the path."""
        return self.path

    def __str__(self) -> str:
        """Return the path, for messages."""
        return self.path


def options_of(file: StrPath) -> Mapping[str, str]:
    """Return the settings that the command line gives beside `file`."""
    return file.options if isinstance(file, JobFile) else {}


def command_line(command: str, file: StrPath, worker: str | None, *options: str) -> str:
    """Return the line that runs a command of incsnap on the same job, as a shell reads it.

    >>> command_line("run", JobFile("a.json", {"bootstrap.servers": "kafka:9092"}), "worker.properties")
    'incsnap run a.json --bootstrap-servers kafka:9092 --worker worker.properties'
    """
    given = [part for name, value in options_of(file).items() for part in (OPTIONS[name], value)]
    of_worker = ["--worker", worker] if worker else []
    return shlex.join(["incsnap", command, os.fspath(file), *given, *of_worker, *options])
