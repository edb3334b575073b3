"""A long queue of tables lies beside the checkpoint, once; the offset names it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.planned_batch import PlannedWith, recall, remember
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.errors import OffsetError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.context import Request, SnapshotContext
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import TableId

CONDITION = "x = '" + "long " * 800 + "'"


def offset(batch: int, waiting: range, condition: str = "") -> Offset:
    requests = (Request("s", DataCollection(TableId("db", f"t{n}"), condition)) for n in waiting)
    return Offset(
        "job", batch, StreamPosition(GtidSet(), "", 0), TopicLayout(1), SnapshotContext(queue=tuple(requests))
    )


def files_of(root: Path) -> list[Path]:
    return sorted((root / "queues").glob("*"))


def through_spark(dumped: dict[str, object]) -> dict[str, object]:
    document: dict[str, object] = json.loads(json.dumps(dumped))
    return document


def test_an_offset_with_thousands_of_waiting_tables_is_small_and_comes_back_whole(tmp_path: Path) -> None:
    asked = offset(1, range(10_000), CONDITION)
    dumped = through_spark(KeptOffsets(Files(str(tmp_path))).dump(asked))

    assert len(json.dumps(dumped)) < 1_000
    assert KeptOffsets(Files(str(tmp_path))).load(dumped) == asked


def test_tables_that_are_begun_write_no_new_file(tmp_path: Path) -> None:
    offsets = KeptOffsets(Files(str(tmp_path)))
    first = offset(1, range(1_000))
    offsets.dump(first)
    for begun in 1, 300, 900:
        later = replace(first, batch=2, snapshot=SnapshotContext(queue=first.snapshot.queue[begun:]))
        dumped = through_spark(offsets.dump(later))
        assert KeptOffsets(Files(str(tmp_path))).load(dumped) == later

    assert len(files_of(tmp_path)) == 1


def test_the_same_queue_is_named_alike_after_a_restart(tmp_path: Path) -> None:
    """Planned again it must give the same offset, whose digest Kafka may hold already."""
    queue = offset(1, range(200))

    assert KeptOffsets(Files(str(tmp_path))).dump(queue) == KeptOffsets(Files(str(tmp_path))).dump(queue)


def test_a_short_queue_needs_no_file(tmp_path: Path) -> None:
    short = offset(1, range(5), CONDITION)
    dumped = through_spark(KeptOffsets(Files(str(tmp_path))).dump(short))

    assert Offset.load(dumped) == short
    assert not files_of(tmp_path)


def test_a_file_is_left_until_no_offset_that_may_be_read_again_names_it(tmp_path: Path) -> None:
    offsets = KeptOffsets(Files(str(tmp_path)))
    long, short = offset(1, range(100)), offset(2, range(3))
    dumped = through_spark(offsets.dump(long))
    for batch in range(1, 40):
        offsets.forget(replace(long, batch=batch))
    assert len(files_of(tmp_path)) == 1

    for batch in range(40, 56):
        offsets.forget(replace(short, batch=batch))
        assert KeptOffsets(Files(str(tmp_path))).load(dumped) == long
    offsets.forget(replace(short, batch=56))
    assert not files_of(tmp_path)


def test_files_of_earlier_lives_go_too(tmp_path: Path) -> None:
    KeptOffsets(Files(str(tmp_path))).dump(offset(1, range(100)))
    offsets = KeptOffsets(Files(str(tmp_path)))
    for batch in 1, 17:
        offsets.forget(offset(batch, range(0)))

    assert not files_of(tmp_path)


@pytest.mark.parametrize("content", [None, b"", b'{"queue":[]}'])
def test_a_file_that_is_gone_or_torn_is_told_by_name(tmp_path: Path, content: bytes | None) -> None:
    dumped = through_spark(KeptOffsets(Files(str(tmp_path))).dump(offset(1, range(100))))
    (file,) = files_of(tmp_path)
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)

    with pytest.raises(CheckpointDamaged, match=file.name):
        KeptOffsets(Files(str(tmp_path))).load(dumped)


def test_an_offset_whose_queue_is_elsewhere_is_not_loaded_without_it(tmp_path: Path) -> None:
    dumped = KeptOffsets(Files(str(tmp_path))).dump(offset(1, range(100)))

    with pytest.raises(OffsetError, match="in a file"):
        Offset.load(dumped)


def test_a_batch_that_is_planned_again_names_its_queue_as_it_did(tmp_path: Path) -> None:
    """Else its digest would be another, and what a bucket has sent of it could not be gone on with."""
    files = Files(str(tmp_path))
    offsets = KeptOffsets(files)
    old, appended = offset(1, range(200)), offset(2, range(50, 210))
    for each in old, appended:
        offsets.dump(each)
    end = offset(3, range(60, 200))  # what was appended has been stopped: the rest of the first file again
    remember(files, offsets, end, PlannedWith("", {}))
    again = KeptOffsets(files)
    start = again.load(through_spark(offsets.dump(appended)))
    recalled = recall(files, again, start)

    assert recalled == end
    assert again.dump(recalled) == offsets.dump(end)


def test_a_file_that_the_next_batch_names_again_is_not_deleted(tmp_path: Path) -> None:
    offsets = KeptOffsets(Files(str(tmp_path)))
    offsets.dump(offset(1, range(200)))
    other = offset(2, range(300, 500))
    offsets.dump(other)
    for batch in range(2, 18):
        offsets.forget(replace(other, batch=batch))
    again = through_spark(offsets.dump(offset(19, range(100, 200))))
    offsets.forget(replace(other, batch=18))

    assert KeptOffsets(Files(str(tmp_path))).load(again) == offset(19, range(100, 200))
