"""The status file on a full disk: it is renewed without space, and as a whole."""

from __future__ import annotations

import errno
import json
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
