"""A folder of a bucket: the objects whose names begin with its path. An object appears when all of it is written.

Content is assembled in memory and sent by one request. Large content is sent in parts, which the store joins at the
end. So if assembling fails, nothing was sent.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incsnap.checkpoint.file_systems import whole
from incsnap.checkpoint.object_store import client_of, store_failures

if TYPE_CHECKING:
    from obstore.store import S3Store

#: Least bytes of one request for a file that is read in places.
_READ_BYTES = 1 << 20
#: A file with more bytes is sent in parts of this size.
_PART_BYTES = 32 << 20


class ObjectFolder:
    """The folder with the URI `root`. Names may contain slashes. Every method raises StoreFailed. See also `Files`."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")

    def path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def write(self, name: str, content: bytes | Callable[[Any], None], *, durable: bool = False) -> None:
        """Write an object. It is always durable."""
        data = memoryview(whole(content)).cast("B")
        with self._object("Writing", name) as (client, path):
            client.put(path, data, use_multipart=len(data) > _PART_BYTES, chunk_size=_PART_BYTES)

    def read(self, name: str) -> pa.Buffer | None:
        with suppress(FileNotFoundError), self._object("Reading", name) as (client, path):
            return pa.py_buffer(client.get(path).bytes())
        return None

    def opened(self, name: str) -> pa.NativeFile | None:
        """Return the file for reading parts of it, or None. Only the requested parts are fetched."""
        with suppress(FileNotFoundError), self._object("Reading", name) as (client, path):
            answer = client.get(path, options={"range": {"suffix": _READ_BYTES}})
            end = memoryview(answer.bytes())
            return pa.PythonFile(_RangedFile(client, path, self.path(name), answer.meta["size"], end), mode="r")
        return None

    def exists(self, name: str) -> bool:
        with suppress(FileNotFoundError), self._object("Looking for", name) as (client, path):
            client.head(path)
            return True
        return False

    def names(self, folder: str) -> list[str]:
        """Return the names in the folder. This takes one request for each 1,000 names."""
        with self._object("Listing", folder) as (client, path):
            listing = client.list_with_delimiter(path)
        paths = [*(str(each["path"]) for each in listing["objects"]), *map(str, listing["common_prefixes"])]
        # s3a writes an empty object for a folder that it was asked to create.
        return [each.rstrip("/").rpartition("/")[2] for each in paths if each.rstrip("/") != path]

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError), self._object("Deleting", name) as (client, path):
            client.delete(path)

    def delete_folder(self, name: str) -> None:
        with suppress(FileNotFoundError), self._object("Deleting", name) as (client, path):
            for page in client.list(path):
                client.delete([entry["path"] for entry in page])

    # -- conditional writes

    def read_tagged(self, name: str) -> tuple[bytes, str] | None:
        """Return the content and the tag of an object, or None. The tag changes with each write."""
        with suppress(FileNotFoundError), self._object("Reading", name) as (client, path):
            answer = client.get(path)
            return bytes(answer.bytes()), answer.meta["e_tag"] or ""
        return None

    def create(self, name: str, content: bytes) -> str | None:
        """Write a new object and return its tag, or return None if the object exists already."""
        return self._put_if(name, content, "create")

    def replace(self, name: str, content: bytes, tag: str) -> str | None:
        """Replace the object whose tag is `tag` and return the new tag.

        Return None if the object has another tag by now, or is gone.
        """
        return self._put_if(name, content, {"e_tag": tag})

    def _put_if(self, name: str, content: bytes, mode: Any) -> str | None:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        refused = (AlreadyExistsError, PreconditionError, FileNotFoundError)
        with suppress(*refused), self._object("Writing", name) as (client, path):
            return client.put(path, content, mode=mode)["e_tag"]
        return None

    @contextmanager
    def _object(self, doing: str, name: str) -> Iterator[tuple[S3Store, str]]:
        """Give the block the client and the path of an object, and raise StoreFailed if the store fails in the block.

        `doing` and the object's name begin the message.
        """
        client, folder = client_of(self._root)
        with store_failures(f"{doing} {self.path(name)}"):
            yield client, f"{folder}/{name}".strip("/")


class _RangedFile(io.RawIOBase):
    """A read-only file for Arrow that fetches ranges of an object on demand. Arrow reads the end of a file first."""

    def __init__(self, client: S3Store, path: str, shown: str, size: int, end: memoryview) -> None:
        self._client, self._path, self._shown = client, path, shown
        self._size = size
        self._at = 0
        self._end = end
        self._near, self._near_at = end, size - len(end)

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

    def seekable(self) -> bool:
        return True
