"""Files on a file system whose renames replace nothing: whatever a crash leaves is the old file or the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.checkpoint.file_systems import FileSystemFolder
from tests.support.hdfs_like import Died, HdfsLike

#: open a stream, rename, delete the old file, rename
_STEPS = 4


def content(folder: FileSystemFolder, name: str = "plan.json") -> bytes | None:
    buffer = folder.read(name)
    return None if buffer is None else bytes(buffer.to_pybytes())


def test_a_file_is_replaced_though_no_rename_does_it(tmp_path: Path) -> None:
    folder = FileSystemFolder(HdfsLike(tmp_path).system, "job")
    for version in (b"one", b"two", b"three"):
        folder.write("plan.json", version)

        assert content(folder) == version
        assert folder.names("") == ["plan.json"]
    folder.delete("plan.json")
    assert content(folder) is None
    assert not folder.exists("plan.json")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("steps", range(_STEPS + 1))
def test_a_crash_at_any_step_leaves_one_of_the_two_whole(tmp_path: Path, steps: int) -> None:
    disk = HdfsLike(tmp_path)
    folder = FileSystemFolder(disk.system, "job")
    folder.write("plan.json", b"old")
    disk.steps_left = steps
    died = False
    try:
        folder.write("plan.json", b"new")
    except Died:
        died = True

    assert died == (steps < _STEPS)
    disk.steps_left = 1 << 30
    # The new file counts from the moment that the old one is gone.
    assert content(folder) == (b"old" if steps < 3 else b"new")
    assert folder.exists("plan.json")
    assert folder.names("") == ["plan.json"]
    assert content(FileSystemFolder(disk.system, "job")) == content(folder)


@pytest.mark.parametrize("second", range(8))
@pytest.mark.parametrize("first", range(_STEPS))
def test_a_crash_behind_a_crash_loses_nothing_either(tmp_path: Path, first: int, second: int) -> None:
    disk = HdfsLike(tmp_path)
    folder = FileSystemFolder(disk.system, "job")
    folder.write("plan.json", b"1")
    disk.steps_left = first
    with pytest.raises(Died):
        folder.write("plan.json", b"2")
    before = content(folder)
    disk.steps_left = second
    done = True
    try:
        folder.write("plan.json", b"3")
    except Died:
        done = False

    disk.steps_left = 1 << 30
    text = content(folder)
    assert text is not None
    assert text == b"3" if done else text in (before, b"3")
    folder.write("plan.json", b"4")
    assert content(folder) == b"4"


def test_a_file_that_is_deleted_does_not_come_back(tmp_path: Path) -> None:
    disk = HdfsLike(tmp_path)
    folder = FileSystemFolder(disk.system, "job")
    folder.write("plan.json", b"old")
    disk.steps_left = 2
    with pytest.raises(Died):
        folder.write("plan.json", b"new")
    disk.steps_left = 1
    with pytest.raises(Died):
        folder.delete("plan.json")

    disk.steps_left = 1 << 30
    assert content(folder) == b"old"
    folder.delete("plan.json")
    assert content(folder) is None


def test_what_is_not_there_may_be_deleted(tmp_path: Path) -> None:
    folder = FileSystemFolder(HdfsLike(tmp_path).system, "job")
    folder.write("windows/1/rows", b"")

    for _ in range(2):
        folder.delete("windows/1/rows")
        folder.delete_folder("windows/1")

    assert folder.names("windows") == []
