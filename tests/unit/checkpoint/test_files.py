"""Tests of the plan and the lock beside Spark's checkpoint: no batch gets two ends, and no job runs twice."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.lock import checkpoint_lock, try_folder
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.planned_batch import PlannedWith, recall, remember
from incsnap.errors import ConfigError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.offset import Offset, TopicLayout, digest

#: Deletions of a folder that is written into.
_DELETIONS = 400

START = Offset("job", 7, StreamPosition(GtidSet(), "binlog.000001", 4), TopicLayout(2))


def test_a_batch_whose_offset_spark_lost_ends_where_it_did(tmp_path: Path) -> None:
    files = Files(str(tmp_path))
    end = replace(START, batch=8, stream=StreamPosition(GtidSet(), "binlog.000001", 900))
    remember(files, KeptOffsets(files), end, PlannedWith("", {}))

    assert end == recall(files, KeptOffsets(files), START)


def test_the_plan_of_another_batch_or_job_is_not_taken(tmp_path: Path) -> None:
    files = Files(str(tmp_path))
    assert recall(files, KeptOffsets(files), START) is None
    remember(files, KeptOffsets(files), replace(START, batch=8), PlannedWith("", {}))

    assert recall(files, KeptOffsets(files), replace(START, batch=8)) is None
    assert recall(files, KeptOffsets(files), replace(START, job_id="other")) is None


def test_a_torn_plan_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "planned-offset.json").write_text('{"format": "incs')

    assert recall(Files(str(tmp_path)), KeptOffsets(Files(str(tmp_path))), START) is None


def test_a_second_job_on_a_checkpoint_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    root = str(tmp_path / "incsnap")
    with (
        checkpoint_lock(str(tmp_path), root),
        pytest.raises(ConfigError, match="Another incsnap"),
        checkpoint_lock(str(tmp_path), root),
    ):
        pass
    with checkpoint_lock(str(tmp_path), root):
        pass


def test_a_checkpoint_that_cannot_be_made_is_refused_before_and_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place = str(tmp_path / "file" / "checkpoint")
    with pytest.raises(ConfigError, match="cannot be made or written to: Not a directory"):
        try_folder(place, f"{place}/incsnap")
    with (
        pytest.raises(ConfigError, match="cannot be made or written to"),
        checkpoint_lock(place, f"{place}/incsnap"),
    ):
        pass


def test_trying_a_checkpoint_leaves_nothing_behind(tmp_path: Path) -> None:
    for place in (str(tmp_path / "new" / "deep"), f"file://{tmp_path}/new", "s3a://bucket/x"):
        try_folder(place, f"{place}/incsnap")
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(_: int, __: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)

    with (
        pytest.raises(ConfigError, match="cannot be locked: Function not implemented"),
        checkpoint_lock(str(tmp_path), str(tmp_path / "incsnap")),
    ):
        pass


def test_the_digest_of_an_end_survives_the_log_and_tells_any_two_ends_apart() -> None:
    end = replace(START, batch=8, signal_positions={"kafka": 5})
    logged = json.loads(json.dumps(end.dump(), indent=1, sort_keys=True))

    assert digest(end.dump()) == digest(logged) == digest(Offset.load(logged).dump())
    others = [replace(end, batch=9), replace(end, job_id="other"), replace(end, signal_positions={"kafka": 6})]
    others.append(replace(end, stream=StreamPosition(GtidSet(), "binlog.000001", 5)))
    assert len({digest(each.dump()) for each in (end, *others)}) == 5


def test_a_folder_that_is_being_written_to_fails_no_batch(tmp_path: Path) -> None:
    """A reader may still write the window of a chunk whose table a DDL has changed, while the batch deletes it."""
    files, done = Files(str(tmp_path)), threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            with contextlib.suppress(OSError):  # the folder is deleted under the writer
                # A few names: more files than the deletions can keep up with would take minutes on a busy machine.
                Files(str(tmp_path)).write(f"windows/1/{number % 50}.arrow", b"rows")

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(_DELETIONS):
            files.delete_folder("windows/1")
    finally:
        done.set()
        for writer in writers:
            writer.join(30)
    files.delete_folder("windows/1")
    assert files.names("windows") == []
