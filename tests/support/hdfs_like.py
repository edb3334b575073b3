"""A local folder that behaves like HDFS: it never renames onto an existing file. It can simulate a crash."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from pyarrow import fs


class Died(Exception):
    pass


class HdfsLike(fs.FileSystemHandler):  # type: ignore[misc]
    """A file system in a folder. `system` is pyarrow's file system for it.

    `steps_left` is how many further changes succeed. The next one raises Died.
    """

    def __init__(self, folder: Path) -> None:
        self._under = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
        self.steps_left = 1 << 30

    @property
    def system(self) -> fs.PyFileSystem:
        return fs.PyFileSystem(self)

    def _step(self) -> None:
        if not self.steps_left:
            raise Died
        self.steps_left -= 1

    def _require(self, path: str) -> None:
        """Raise libhdfs's error for the deletion of a missing file."""
        if self._under.get_file_info(path).type == fs.FileType.NotFound:
            raise OSError(errno.EIO, "HDFS delete failed")

    def get_type_name(self) -> str:
        return "hdfs"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self._under.get_file_info(paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> Any:
        return self._under.get_file_info(selector)

    def create_dir(self, path: str, recursive: bool) -> None:
        self._step()
        self._under.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self._step()
        self._require(path)
        self._under.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self._step()
        self._under.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        self._step()
        self._require(path)
        self._under.delete_file(path)

    def move(self, src: str, dest: str) -> None:
        self._step()
        if self._under.get_file_info(dest).type != fs.FileType.NotFound:
            raise OSError(f"HDFS: {dest} is there")
        self._under.move(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError

    def open_input_stream(self, path: str) -> Any:
        return self._under.open_input_stream(path)

    def open_input_file(self, path: str) -> Any:
        return self._under.open_input_file(path)

    def open_output_stream(self, path: str, metadata: object) -> Any:
        self._step()
        return self._under.open_output_stream(path)

    def open_append_stream(self, path: str, metadata: object) -> Any:
        raise NotImplementedError
