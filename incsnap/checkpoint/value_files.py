"""What a batch is made of besides the binlog and its offset, and is too long for that: beside the checkpoint, where the
offset has the file's name.

    defaults/<digest of the content>.json       the DEFAULTs of columns that the schemas of a batch show
    definitions/<digest of the content>.json    tables of which the binlog does not tell columns' names

The server would answer otherwise when the batch is run again behind an ALTER TABLE. A file holds all that the planner
knows, so a new one is written where a table is met for the first time or was altered, and not for each batch.
"""

from __future__ import annotations

import json
from typing import Generic, TypeVar

from incsnap.checkpoint.content_files import ContentFiles
from incsnap.checkpoint.files import Files
from incsnap.snapshot.dataclass_json import from_json, to_json

T = TypeVar("T")


class ValueFiles(Generic[T]):
    """Values of ``kind`` (see ``dataclass_json``) in ``folder``. ``description``: of what they are, for messages.
    Written and read by the planner."""

    def __init__(self, files: Files, folder: str, description: str, kind: type[T]) -> None:
        self._files = ContentFiles(files, folder, description)
        self._kind = kind
        self._newest: tuple[T, str] | None = None

    def keep(self, value: T) -> str:
        """The name of the file that holds it, which is on the disk then."""
        if self._newest is None or self._newest[0] != value:
            content = json.dumps(to_json(self._kind, value), separators=(",", ":")).encode()
            self._newest = (value, self._files.write(content))
        self._files.named_again(self._newest[1])
        return self._newest[1]

    def read(self, name: str) -> T:
        """Raises ``CheckpointDamaged``."""
        if self._newest is None or self._newest[1] != name:
            self._newest = (from_json(self._kind, json.loads(self._files.read(name))), name)
        return self._newest[0]

    def forget(self, name: str, done: int) -> None:
        """Batch ``done``, whose end names that file ("" for none), is done."""
        gone = self._files.forget(name or None, done)
        if self._newest is not None and self._newest[1] in gone:
            self._newest = None
