"""A checkpoint's files in memory: `Files` in a dict, without a disk."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from incsnap.checkpoint.files import Files


class FilesInMemory(Files):
    def __init__(self) -> None:
        super().__init__("/nowhere")
        self._content: dict[str, bytes] = {}

    def write(self, name: str, content: bytes | Callable[[Any], None], *, durable: bool = False) -> None:
        if callable(content):
            stream = io.BytesIO()
            content(stream)
            content = stream.getvalue()
        self._content[name] = content

    def read(self, name: str) -> pa.Buffer | None:
        content = self._content.get(name)
        return None if content is None else pa.py_buffer(content)

    def opened(self, name: str) -> pa.Buffer | None:
        return self.read(name)

    def exists(self, name: str) -> bool:
        return name in self._content

    def names(self, folder: str) -> list[str]:
        begin = f"{folder}/"
        children = (name[len(begin) :].partition("/")[0] for name in self._content if name.startswith(begin))
        return list(dict.fromkeys(children))

    def delete(self, name: str) -> None:
        self._content.pop(name, None)

    def delete_folder(self, name: str) -> None:
        for each in [each for each in self._content if each.startswith(f"{name}/")]:
            del self._content[each]
