"""Files with values that a batch needs besides the binlog, and that are too long for its offset.

    defaults/<digest of the content>.json       the DEFAULTs of columns that the schemas of a batch show
    definitions/<digest of the content>.json    tables whose column names the binlog does not contain

The offset names the file. If the batch runs again after an ALTER TABLE, the server would give other values. A file
holds all values that the planner knows. So a new file is written only when a table is met for the first time or was
altered, not for each batch.
"""

from __future__ import annotations

import json
from typing import Generic, TypeVar

from incsnap.checkpoint.content_files import ContentFiles
from incsnap.checkpoint.files import Files
from incsnap.snapshot.dataclass_json import from_json, to_json

T = TypeVar("T")


class ValueFiles(Generic[T]):
    """Values of the class `kind` (see `dataclass_json`) in the folder `folder`, for the planner.

    `description` says in messages what the values are.
    """

    def __init__(self, files: Files, folder: str, description: str, kind: type[T]) -> None:
        self._files = ContentFiles(files, folder, description)
        self._kind = kind
        self._newest: tuple[T, str] | None = None

    def keep(self, value: T) -> str:
        """Write the value, forced to the disk, unless it is the newest one. Return the file's name."""
        if self._newest is None or self._newest[0] != value:
            content = json.dumps(to_json(self._kind, value), separators=(",", ":")).encode()
            self._newest = (value, self._files.write(content))
        self._files.named_again(self._newest[1])
        return self._newest[1]

    def read(self, name: str) -> T:
        """Return the value in a file. Raise CheckpointDamaged if the file is missing or torn."""
        if self._newest is None or self._newest[1] != name:
            self._newest = (from_json(self._kind, json.loads(self._files.read(name))), name)
        return self._newest[0]

    def forget(self, name: str, done: int) -> None:
        """Delete files that are not needed any more.

        Batch `done` is done, and its end names the file `name` ("" for none).
        """
        gone = self._files.forget(name or None, done)
        if self._newest is not None and self._newest[1] in gone:
            self._newest = None
