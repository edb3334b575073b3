"""The status file on a full disk: it is renewed without space, and as a whole."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.spare_status import SparedStatus
from incsnap.errors import IncsnapError
from incsnap.spark.full_disk import disk_full


class _FullDisk:
    """A store without space."""

    def __init__(self, code: int = errno.ENOSPC) -> None:
        self.code = code

    def write(self, name: str, content: bytes) -> None:
        raise OSError(self.code, "No space left on device")


def test_the_status_is_renewed_without_space(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    SparedStatus(Files(str(tmp_path)), str(tmp_path)).write("status.json", b'{"n": 0}')
    path.chmod(0o640)
    full = SparedStatus(_FullDisk(), str(tmp_path))

    for number in range(1, 4):
        full.write("status.json", b'{"n": %d}' % number)
        assert json.loads(path.read_text()) == {"n": number}
        assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(each.name for each in tmp_path.iterdir()) == ["status.json", "status.spare"]


def test_the_first_status_may_be_written_without_space(tmp_path: Path) -> None:
    SparedStatus(_FullDisk(), str(tmp_path)).write("status.json", b"{}")
    assert json.loads((tmp_path / "status.json").read_text()) == {}


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
