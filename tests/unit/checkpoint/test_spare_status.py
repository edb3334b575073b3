"""The status file on a full disk: it is renewed without space, and as a whole."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.spare_status import SparedStatus
from incsnap.errors import IncsnapError
from incsnap.monitoring.status import FinishedTable, KeyRange, NotificationStatus, dump
from incsnap.spark.full_disk import disk_full
from tests.support.job_statuses import running


class _FullDisk:
    """A store without space."""

    def __init__(self, code: int = errno.ENOSPC) -> None:
        self.code = code

    def write(self, name: str, content: bytes) -> None:
        raise OSError(self.code, "No space left on device")


def _space(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.iterdir())


def test_the_status_is_renewed_without_space(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    SparedStatus(Files(str(tmp_path)), str(tmp_path)).write("status.json", b'{"n": 0}')
    path.chmod(0o640)
    full = SparedStatus(_FullDisk(), str(tmp_path))

    for number in range(1, 4):
        full.write("status.json", b'{"n": %d}' % number)
        assert json.loads(path.read_text()) == {"n": number}
        assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "status.json",
        "status.spare",
        "status.spare2",
    ]


def test_a_larger_status_is_written_without_space_after_a_smaller_one(tmp_path: Path) -> None:
    SparedStatus(Files(str(tmp_path)), str(tmp_path)).write("status.json", b"{}")
    full = SparedStatus(_FullDisk(), str(tmp_path))

    reserved = _space(tmp_path)
    for size in (1_000, 70_000, 50, 200_000, 200_000):
        content = json.dumps({"n": "x" * size}).encode()
        full.write("status.json", content)
        assert json.loads((tmp_path / "status.json").read_text()) == json.loads(content)
        assert _space(tmp_path) == reserved


def test_a_smaller_reserve_of_an_earlier_release_is_kept_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare = tmp_path / "status.spare"
    spare.write_bytes(b"x" * 65_536)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        store = SparedStatus(_FullDisk(), str(tmp_path))
        assert spare.stat().st_size == 65_536
        for number in range(3):
            store.write("status.json", b'{"n": %d}' % number)
            assert json.loads((tmp_path / "status.json").read_text()) == {"n": number}

    SparedStatus(Files(str(tmp_path)), str(tmp_path))
    assert spare.stat().st_size == 1 << 18


def test_the_reserve_needs_no_help_of_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = os.posix_fallocate

    def emulated(fd: int, offset: int, length: int) -> None:
        """Refuse a file that is appended to, as the C library does if the file system has no fallocate."""
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND:
            raise OSError(errno.EBADF, "Bad file descriptor")
        reserve(fd, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", emulated)
    SparedStatus(Files(str(tmp_path)), str(tmp_path))
    assert _space(tmp_path) == 1 << 19


def test_the_first_status_may_be_written_without_space(tmp_path: Path) -> None:
    SparedStatus(_FullDisk(), str(tmp_path)).write("status.json", b"{}")
    assert json.loads((tmp_path / "status.json").read_text()) == {}


def test_the_largest_status_fits_the_spare_file(tmp_path: Path) -> None:
    busy, name = running(), f"{'d' * 30}.{'t' * 60}"
    tables = [replace(busy.snapshot.tables[0], table=name, quarantined=(KeyRange("k" * 80, "k" * 80),) * 5)] * 64
    ended = FinishedTable(name, "s" * 42, "NO_PRIMARY_KEY", 10**9, 10**13, reason="r" * 300, missing_keys="k" * 300)
    snapshot = replace(
        busy.snapshot,
        waiting_first=(name,) * 64,
        tables=tuple(tables),
        windows=(replace(busy.snapshot.windows[0], table=name),) * 64,
        finished=(ended,) * 100,
    )
    notice = NotificationStatus("s" * 42, "TABLE_SCAN_COMPLETED", 10**13, {"scanned_collection": name, "x": "k" * 600})
    content = json.dumps(dump(replace(busy, snapshot=snapshot, notifications=(notice,) * 50))).encode()
    SparedStatus(Files(str(tmp_path)), str(tmp_path)).write("status.json", b"{}")

    assert 1 << 16 < len(content) <= (tmp_path / "status.spare").stat().st_size


def test_other_errors_are_raised(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        SparedStatus(_FullDisk(errno.EIO), str(tmp_path)).write("status.json", b"{}")


def test_a_full_disk_is_one_sentence_with_the_setting(tmp_path: Path) -> None:
    text = f"java.io.IOException: {tmp_path}/spark/offsets/3: No space left on device\n\tat sun.nio"
    error = disk_full(text, str(tmp_path))

    assert isinstance(error, IncsnapError)
    assert error.resumable
    assert error.message.startswith(f"no space left in checkpoint.location {tmp_path} (")
    assert disk_full("a timeout", str(tmp_path)) is None


def test_a_full_temporary_folder_is_told_from_a_full_checkpoint(tmp_path: Path) -> None:
    error = disk_full("java.io.IOException: No space left on device", str(tmp_path))

    assert error is not None
    assert error.message == "no space left in Spark's temporary folder"
    assert "SPARK_LOCAL_DIRS" in error.hint
