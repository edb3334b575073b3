"""A folder of a file system whose files are whole or absent: a file is written under another name and then renamed.

On a local disk a rename replaces an existing file. HDFS does not do that. Between deleting the old file and renaming
the new one there would be no file. So the new file is renamed twice. Readers use the first new name if the file is
missing:

    write <name>.<uuid>.tmp   →   rename to <name>.new   →   delete <name>   →   rename <name>.new to <name>
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import fs

_log = logging.getLogger(__name__)

_TEMPORARY = ".tmp"
_NEW = ".new"
#: Stores without a real rename. A file appears there when all of it is written.
_OBJECT_STORES = frozenset(("gcs", "abfs"))
#: Tries to delete a folder that somebody writes into.
_DELETIONS = 5


class FileSystemFolder:
    """The folder `base` of a pyarrow file system. Methods raise OSError. `Files` explains the methods."""

    def __init__(self, system: fs.FileSystem, base: str) -> None:
        self._fs, self._base = system, base
        self._local = isinstance(system, fs.LocalFileSystem)
        #: Whether a rename replaces an existing file.
        self._replaces = self._local

    def path(self, name: str) -> str:
        return f"{self._base}/{name}"

    def write(self, name: str, content: bytes | Callable[[Any], None], *, durable: bool = False) -> None:
        path = self.path(name)
        folder = path.rpartition("/")[0]
        if self._fs.type_name in _OBJECT_STORES:
            assembled = whole(content)  # a stream that an error closes would leave a half-written file
            with self._fs.open_output_stream(path) as stream:
                stream.write(assembled)
            return
        temporary = f"{path}.{uuid.uuid4().hex}{_TEMPORARY}"
        try:
            stream = self._fs.open_output_stream(temporary)
        except FileNotFoundError:
            self._fs.create_dir(folder, recursive=True)
            stream = self._fs.open_output_stream(temporary)
        try:
            with stream:
                if callable(content):
                    content(stream)
                else:
                    stream.write(content)
            if durable and self._local:
                force(temporary)
            if self._replaces:
                self._fs.move(temporary, path)
            else:
                self._replace(temporary, path)
        except OSError:  # remove the leftover, or each attempt would fill a full disk further
            with contextlib.suppress(OSError):
                self._fs.delete_file(temporary)
            raise
        if durable and self._local:
            force(folder)

    def _replace(self, temporary: str, path: str) -> None:
        """Rename the file where a rename does not replace. At each moment one of the two names has a whole file."""
        new = path + _NEW
        if self._is_there(new):
            # Left by a writer that was interrupted. The leftover counts if the old file is gone.
            if self._is_there(path):
                self._fs.delete_file(new)
            else:
                self._fs.move(new, path)
        self._fs.move(temporary, new)
        if self._is_there(path):
            self._fs.delete_file(path)
        self._fs.move(new, path)

    def read(self, name: str) -> pa.Buffer | None:
        """Return the content, or None if there is no file. A local file is mapped, not read."""
        path = self.path(name)
        try:
            if self._local:
                # An empty file cannot be mapped.
                if not os.path.getsize(path):
                    return pa.py_buffer(b"")
                return pa.memory_map(path).read_buffer()
            with self._input(path) as stream:
                return stream.read_buffer()
        except FileNotFoundError:
            return None

    def opened(self, name: str) -> Any:
        if self._local:
            return self.read(name)
        try:
            return self._input(self.path(name))
        except FileNotFoundError:
            return None

    def _input(self, path: str) -> Any:
        try:
            return self._open(path)
        except FileNotFoundError:
            if self._replaces:
                raise
            try:
                return self._open(path + _NEW)
            except FileNotFoundError:
                return self._open(path)  # renamed between the two attempts

    def _open(self, path: str) -> Any:
        if self._fs.type_name == "hdfs" and not self._is_there(path):
            # libhdfs would print twenty lines to stderr.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._fs.open_input_file(path)

    def exists(self, name: str) -> bool:
        path = self.path(name)
        if self._local:
            return os.path.exists(path)
        return self._is_there(path) or (not self._replaces and self._is_there(path + _NEW)) or self._is_there(path)

    def _is_there(self, path: str) -> bool:
        return bool(self._fs.get_file_info(path).type != fs.FileType.NotFound)

    def names(self, folder: str) -> list[str]:
        selector = fs.FileSelector(self.path(folder), allow_not_found=True)
        file_names = [info.base_name for info in self._fs.get_file_info(selector)]
        complete = [name for name in file_names if not name.endswith(_TEMPORARY)]
        return complete if self._replaces else list(dict.fromkeys(name.removesuffix(_NEW) for name in complete))

    def delete(self, name: str) -> None:
        # The newer name first: if only that name was left, the file would reappear.
        for path in (*(() if self._replaces else (self.path(name) + _NEW,)), self.path(name)):
            self._delete(self._fs.delete_file, path)

    def delete_folder(self, name: str) -> None:
        """Delete a folder with its content.

        A reader may write into the folder of a window that a DDL has dropped. Then the folder is tried again, and at
        last left: the next start deletes windows that no offset knows.
        """
        for _ in range(_DELETIONS):
            try:
                self._delete(self._fs.delete_dir, self.path(name))
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
            else:
                return
        _log.info("%s is being written to, and is left for the next start to delete", self.path(name))

    def _delete(self, delete: Callable[[str], None], path: str) -> None:
        try:
            delete(path)
        except FileNotFoundError:
            return
        except OSError:
            # libhdfs reports EIO for a missing file.
            if self._local or self._is_there(path):
                raise


def whole(content: bytes | Callable[[Any], None]) -> Any:
    """Return a file's content as one buffer in memory. A `content` that is a function writes to a stream."""
    if not callable(content):
        return content
    stream = pa.BufferOutputStream()
    content(stream)
    return stream.getvalue()


def force(path: str | os.PathLike[str]) -> None:
    """Force the data of a file or folder to the disk (fsync), so that a power cut does not lose it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
