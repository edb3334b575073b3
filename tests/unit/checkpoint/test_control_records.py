"""Tests of the files with control records: they are sent as they were written, or the checkpoint is called damaged."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from incsnap.binlog.tail import Tail
from incsnap.checkpoint.control_records import ControlFiles, ControlRecord
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner.batch import batch_parts
from incsnap.snapshot.offset import Offset, OpenCounts, TopicLayout
from incsnap.tasks import blocks
from incsnap.tasks.partitions import ReadyPart
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of

_GTID = "11111111-2222-3333-4444-555555555555:5"
_RECORDS = [ControlRecord("p", b"k", b"v1"), ControlRecord("p.d.t", None, b"v2"), ControlRecord("p", b"k", b"v3")]


def test_records_are_read_back_by_topic_in_order(tmp_path: Path) -> None:
    files = ControlFiles(Files(str(tmp_path)))
    assert files.write(7, _RECORDS) == ("p", "p.d.t")
    records = ControlFiles(Files(str(tmp_path))).read(7, "p")
    assert records.column("value").to_pylist() == [b"v1", b"v3"]
    assert records.column("partition").to_pylist() == [0, 0]
    assert ControlFiles(Files(str(tmp_path))).read(7, "p.d.t").column("key").to_pylist() == [None]


def test_nothing_is_written_where_there_is_nothing(tmp_path: Path) -> None:
    assert ControlFiles(Files(str(tmp_path))).write(7, []) == ()
    assert not list(tmp_path.iterdir())


def test_a_lost_or_torn_file_is_a_damaged_checkpoint(tmp_path: Path) -> None:
    files = ControlFiles(Files(str(tmp_path)))
    files.write(7, _RECORDS)
    with pytest.raises(CheckpointDamaged):
        files.read(8, "p")
    file = tmp_path / "control" / "7.arrow"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CheckpointDamaged):
        files.read(7, "p")


def test_files_go_some_batches_after_theirs(tmp_path: Path) -> None:
    ControlFiles(Files(str(tmp_path))).write(7, _RECORDS)
    again = ControlFiles(Files(str(tmp_path)))
    again.forget(22)
    assert (tmp_path / "control" / "7.arrow").exists()
    again.forget(23)
    assert not (tmp_path / "control" / "7.arrow").exists()


def _parts(tmp_path: Path, start: Offset, end: Offset) -> list[Any]:
    settings = settings_of(MySqlAddress("h", 1, "u", ""), "k:1", "p", "d", provide__transaction__metadata="true")
    tail = cast(Tail, SimpleNamespace(slices=lambda *_, **__: []))
    return batch_parts(settings, 2, (), tail, ControlFiles(Files(str(tmp_path))), (), start, end)


def test_a_transaction_whose_events_all_came_before_is_ended(tmp_path: Path) -> None:
    begun = StreamPosition(GtidSet(), "f.1", 9, open_gtid=_GTID, events_done=3)
    start = Offset("j", 3, begun, TopicLayout(2), counted=OpenCounts(2_000_000, (("d.t", 3), ("d.u", 1))))
    end = dataclasses.replace(start, batch=4, stream=StreamPosition(GtidSet(), "f.1", 99), counted=None)
    (part,) = _parts(tmp_path, start, end)
    assert isinstance(part, ReadyPart)
    ((_, _, _, kind, topic, _, block),) = part.rows
    assert (kind, topic) == (blocks.EVENTS, "p.transaction")
    (records,) = blocks.decode(block)
    assert records.column("key").to_pylist() == [b'{"id":"11111111-2222-3333-4444-555555555555:5"}']
    assert records.column("value").to_pylist() == [
        b'{"status":"END","id":"11111111-2222-3333-4444-555555555555:5","event_count":4,"data_collections":[{"data_collection":"d.t","event_count":3},'
        b'{"data_collection":"d.u","event_count":1}],"ts_ms":2000}'
    ]


def test_a_transaction_that_goes_on_or_had_no_records_is_not_ended(tmp_path: Path) -> None:
    begun = StreamPosition(GtidSet(), "f.1", 9, open_gtid=_GTID, events_done=3)
    start = Offset("j", 3, begun, TopicLayout(2), counted=OpenCounts(2_000_000, (("d.t", 3),)))
    assert _parts(tmp_path, start, dataclasses.replace(start, batch=4)) == []
    empty = dataclasses.replace(start, counted=OpenCounts(2_000_000))
    ended = dataclasses.replace(empty, batch=4, stream=StreamPosition(GtidSet(), "f.1", 99), counted=None)
    assert _parts(tmp_path, empty, ended) == []


def test_counts_and_topics_of_an_offset_survive(tmp_path: Path) -> None:
    offset = Offset(
        "j",
        3,
        StreamPosition(GtidSet(), "f.1", 9),
        TopicLayout(2),
        counted=OpenCounts(5, (("d.t", 3),)),
        control=("p",),
    )
    assert Offset.load(offset.dump()) == offset
    older = {**dataclasses.replace(offset, counted=None, control=()).dump(), "version": 1}
    assert "counted" not in older
    assert Offset.load(older) == dataclasses.replace(offset, counted=None, control=())
