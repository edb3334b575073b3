"""The DEFAULTs of columns that the schemas of a batch show, beside the checkpoint: the offset has the file's name.

    defaults/<digest of the content>.json

The server would answer otherwise when the batch is run again behind an ALTER TABLE. A file holds all that the planner
knows, so a new one is written where a table is met for the first time or was altered, and not for each batch.
"""

from __future__ import annotations

import json

from incsnap.checkpoint.content_files import ContentFiles
from incsnap.checkpoint.files import Files
from incsnap.snapshot.dataclass_json import from_json, to_json
from incsnap.tables import TableDefaults


class DefaultFiles:
    """Written and read by the planner."""

    def __init__(self, files: Files) -> None:
        self._files = ContentFiles(files, "defaults", "the DEFAULTs of columns")
        self._newest: tuple[TableDefaults, str] | None = None

    def keep(self, defaults: TableDefaults) -> str:
        """The name of the file that holds them, which is on the disk then."""
        if self._newest is None or self._newest[0] != defaults:
            content = json.dumps(to_json(TableDefaults, defaults), separators=(",", ":")).encode()
            self._newest = (defaults, self._files.write(content))
        self._files.named_again(self._newest[1])
        return self._newest[1]

    def read(self, name: str) -> TableDefaults:
        """Raises ``CheckpointDamaged``."""
        if self._newest is not None and self._newest[1] == name:
            return self._newest[0]
        return from_json(TableDefaults, json.loads(self._files.read(name)))

    def forget(self, name: str, done: int) -> None:
        """Batch ``done``, whose end names that file ("" for none), is done."""
        gone = self._files.forget(name or None, done)
        if self._newest is not None and self._newest[1] in gone:
            self._newest = None
