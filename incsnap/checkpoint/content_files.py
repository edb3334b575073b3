"""Files beside the checkpoint that are named by a digest of their content, so that many offsets can share one file.

A file is forced to the disk before an offset names it. It is deleted only when no offset that names it can be read any
more: a power cut may take back the last batches that Spark has recorded as done.
"""

from __future__ import annotations

import hashlib

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.windows import CheckpointDamaged

#: Batches for which a file is kept after the last offset that names it.
_KEPT = 16


class ContentFiles:
    """The files of one folder, named `<folder>/<digest of the content>.json`.

    `description` says in messages what the files hold.
    """

    def __init__(self, files: Files, folder: str, description: str) -> None:
        self._files = files
        self._folder = folder
        self._description = description
        self._names: set[str] | None = None
        #: File -> the batch after which the file can be deleted.
        self._leaving: dict[str, int] = {}

    def write(self, content: bytes) -> str:
        """Write the content, forced to the disk, and return the file's name for an offset."""
        name = _digest(content)
        self._files.write(self._path(name), content, durable=True)
        self._file_names().add(name)
        self.named_again(name)
        return name

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raise CheckpointDamaged if the file is missing or torn."""
        buffer = self._files.read(self._path(name))
        content = buffer.to_pybytes() if buffer is not None else b""
        if _digest(content) != name:
            raise CheckpointDamaged(f"{self._files.path(self._path(name))}, {self._description}, is gone or torn")
        return content

    def named_again(self, name: str) -> None:
        """Cancel the deletion of the file that `forget` has planned, because an offset that is written now names the
        file.

        Spark reports a batch as done after it has asked for the next batch. The next batch may name an older file
        again.
        """
        self._leaving.pop(name, None)

    def forget(self, named: str | None, done: int) -> list[str]:
        """Delete files that are not needed any more, and return their names.

        Batch `done` is done, and the offset at its end names the file `named` (None: no file).
        """
        names = self._file_names()
        for name in names:
            self._leaving.setdefault(name, done + _KEPT)
        if named is not None:
            self._leaving.pop(named, None)
        gone = [name for name, last in self._leaving.items() if last <= done]
        for name in gone:
            self._files.delete(self._path(name))
            names.discard(name)
            del self._leaving[name]
        return gone

    def _file_names(self) -> set[str]:
        if self._names is None:
            self._names = {file.partition(".")[0] for file in self._files.names(self._folder)}
        return self._names

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}.json"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
