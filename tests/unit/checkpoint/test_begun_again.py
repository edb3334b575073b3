"""A test of a new job that begins in the checkpoint of an old one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import begin_again_at, first_offset, kept_first_offset
from incsnap.checkpoint.refused import RefusedRecord, RefusedRecords
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.offset import Offset, TopicLayout

OLD = Offset("old", 0, StreamPosition(GtidSet(), "binlog.000001", 4), TopicLayout(2))


def test_a_new_job_finds_no_file_of_a_batch_of_the_old_job(tmp_path: Path) -> None:
    root = tmp_path / "incsnap"
    files, new = Files(str(root)), replace(OLD, job_id="new")
    first_offset(str(root), lambda: OLD)
    record = RefusedRecord(0, "p.db.a", "db.a", "31", "1", 2_000_000, "max.message.bytes")
    RefusedRecords(files).write(1, 0, "digest", (record,))
    for folder in ("windows/1-0", "discards/1", "control/1"):
        (root / folder).mkdir(parents=True)

    begin_again_at(Files(str(tmp_path)), files, new)

    assert kept_first_offset(files) == new
    assert RefusedRecords(files).of_batch(1) == ()
    assert [path.name for path in root.iterdir() if path.is_dir()] == []
