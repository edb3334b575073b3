"""A folder of a bucket: objects whose names begin with it. An object is there when all of it is, so nothing is renamed.

What is written is put together in memory first and sent by one request, or, if it is large, in parts that the store
joins when it is told to; a writer that fails, fails before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incsnap.checkpoint.object_store import client_of, store_failures

if TYPE_CHECKING:
    from obstore.store import S3Store

#: Bytes that one request brings at least of a file that is read in places.
_READ_BYTES = 1 << 20
#: Bytes from which on a file is sent in parts, of as many.
_PART_BYTES = 32 << 20


class ObjectFolder:
    """``root``: its URI. Names may have slashes. Every method raises ``StoreFailed``."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")

    def path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def write(self, name: str, content: bytes | Callable[[Any], None], *, durable: bool = False) -> None:
        """Durable when it returns, always."""
        if callable(content):
            stream = pa.BufferOutputStream()
            content(stream)
            data: Any = memoryview(stream.getvalue()).cast("B")
        else:
            data = content
        client, path = self._client_and_path(name)
        with store_failures(f"Writing {self.path(name)}"):
            client.put(path, data, use_multipart=len(data) > _PART_BYTES, chunk_size=_PART_BYTES)

    def read(self, name: str) -> pa.Buffer | None:
        client, path = self._client_and_path(name)
        try:
            with store_failures(f"Reading {self.path(name)}"):
                return pa.py_buffer(client.get(path).bytes())
        except FileNotFoundError:
            return None

    def opened(self, name: str) -> pa.NativeFile | None:
        """The file, for whoever needs few places of it: what is not asked for is not brought."""
        client, path = self._client_and_path(name)
        try:
            with store_failures(f"Reading {self.path(name)}"):
                answer = client.get(path, options={"range": {"suffix": _READ_BYTES}})
                end = answer.bytes()
        except FileNotFoundError:
            return None
        return pa.PythonFile(_RangedFile(client, path, self.path(name), answer.meta["size"], memoryview(end)), mode="r")

    def exists(self, name: str) -> bool:
        client, path = self._client_and_path(name)
        try:
            with store_failures(f"Looking for {self.path(name)}"):
                client.head(path)
        except FileNotFoundError:
            return False
        return True

    def names(self, folder: str) -> list[str]:
        """The names of what is in it. The store is asked once for each 1,000 of them."""
        client, path = self._client_and_path(folder)
        with store_failures(f"Listing {self.path(folder)}"):
            listing = client.list_with_delimiter(path)
        paths = [*(str(each["path"]) for each in listing["objects"]), *map(str, listing["common_prefixes"])]
        # s3a leaves an empty object in place of a folder that it was asked to make.
        return [each.rstrip("/").rpartition("/")[2] for each in paths if each.rstrip("/") != path]

    def delete(self, name: str) -> None:
        client, path = self._client_and_path(name)
        with suppress(FileNotFoundError), store_failures(f"Deleting {self.path(name)}"):
            client.delete(path)

    def delete_folder(self, name: str) -> None:
        client, path = self._client_and_path(name)
        with suppress(FileNotFoundError), store_failures(f"Deleting {self.path(name)}"):
            for page in client.list(path):
                client.delete([entry["path"] for entry in page])

    # -- under a condition

    def read_tagged(self, name: str) -> tuple[bytes, str] | None:
        """The content, and the tag that is another after each write."""
        client, path = self._client_and_path(name)
        try:
            with store_failures(f"Reading {self.path(name)}"):
                answer = client.get(path)
                return bytes(answer.bytes()), answer.meta["e_tag"] or ""
        except FileNotFoundError:
            return None

    def create(self, name: str, content: bytes) -> str | None:
        """Writes an object that is new. Returns its tag; ``None`` where there is one already."""
        return self._put_if(name, content, "create")

    def replace(self, name: str, content: bytes, tag: str) -> str | None:
        """Writes the object that ``tag`` is of. Returns its new tag; ``None`` where it is another by now, or gone."""
        return self._put_if(name, content, {"e_tag": tag})

    def _put_if(self, name: str, content: bytes, mode: Any) -> str | None:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        client, path = self._client_and_path(name)
        try:
            with store_failures(f"Writing {self.path(name)}"):
                return client.put(path, content, mode=mode)["e_tag"]
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            return None

    def _client_and_path(self, name: str) -> tuple[S3Store, str]:
        client, folder = client_of(self._root)
        return client, f"{folder}/{name}".strip("/")


class _RangedFile:
    """A file that is asked for where it is read, for Arrow, which begins at its end."""

    def __init__(self, client: S3Store, path: str, shown: str, size: int, end: memoryview) -> None:
        self._client, self._path, self._shown = client, path, shown
        self._size = size
        self._at = 0
        self._end = end
        self._near, self._near_at = end, size - len(end)
        self.closed = False

    def size(self) -> int:
        return self._size

    def tell(self) -> int:
        return self._at

    def seek(self, to: int, whence: int = 0) -> int:
        self._at = to + (0, self._at, self._size)[whence]
        return self._at

    def read(self, count: int = -1) -> bytes:
        begin = self._at
        until = self._size if count < 0 else min(begin + count, self._size)
        self._at = max(begin, until)
        if until <= begin:
            return b""
        for buffer, buffer_at in ((self._end, self._size - len(self._end)), (self._near, self._near_at)):
            if buffer_at <= begin and until <= buffer_at + len(buffer):
                return bytes(buffer[begin - buffer_at : until - buffer_at])
        last = min(max(until, begin + _READ_BYTES), self._size)
        with store_failures(f"Reading {self._shown}"):
            self._near, self._near_at = memoryview(self._client.get_range(self._path, start=begin, end=last)), begin
        return bytes(self._near[: until - begin])

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
