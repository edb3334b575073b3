"""Tests of a job that begins again, without servers: what it inherits from the job before."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import first_offset, kept_first_offset
from incsnap.config.settings import SnapshotSettings
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner import begin_again
from incsnap.planner.gap_lists import GapLists, closed_positions, is_unrepaired, open_positions
from incsnap.planner.online_ddl import OnlineDdl
from incsnap.planner.signal_commands import CapturedTables
from incsnap.snapshot.commands import ChosenRows, DataCollection, Stop
from incsnap.snapshot.context import Request, SnapshotContext
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import TableId
from tests.support.job_settings import loaded_with

_STREAM = StreamPosition(GtidSet(), "", 0)


def nothing() -> CapturedTables:
    return CapturedTables(())


@pytest.mark.parametrize(("recovery", "is_open"), [("differences", True), ("snapshot", False)])
def test_a_comparison_that_the_new_job_does_not_make_is_not_waited_for(
    recovery: str, is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "incsnap")
    settings = loaded_with(
        snapshot__mode="when_needed", incsnap__gap__recovery=recovery, checkpoint__location=str(tmp_path)
    ).settings
    lost = Offset("old", 0, _STREAM, TopicLayout(1), signal_positions={**open_positions(), "file": 7})
    first_offset(root, lambda: lost)
    monkeypatch.setattr(begin_again, "connect", lambda _: BytesIO())
    monkeypatch.setattr(begin_again, "lost_behind", lambda *_: "the binlog is purged")
    monkeypatch.setattr(begin_again, "first_position", lambda *_: Offset("new", 0, _STREAM, TopicLayout(1)))
    monkeypatch.setattr(OnlineDdl, "begun_again", lambda *_: "")
    monkeypatch.setattr(begin_again, "fence_others", lambda *_: None)

    begin_again.begin_again_where_lost(settings, root)

    first = kept_first_offset(Files(root))
    assert first is not None
    assert (first.job_id, first.signal_positions["file"]) == ("new", 7)
    assert is_unrepaired(first) == is_open
    assert (first.signal_positions["start"] == "closed") == is_open


def test_requests_of_a_comparison_that_the_new_job_does_not_make_are_stopped(tmp_path: Path) -> None:
    keys = ChosenRows(files="checkpoint:gap/old/keys-1-1.json", deletes=True)
    old = Request("gap-old-1", DataCollection(TableId("shop", "t"), chosen=keys))
    own = Request("initial", DataCollection(TableId("shop", "t")))
    positions = closed_positions(open_positions())
    first = Offset(
        "new", 0, _STREAM, TopicLayout(1), snapshot=SnapshotContext(queue=(old, own)), signal_positions=positions
    )
    lists = GapLists(SnapshotSettings(), Files(str(tmp_path)))

    assert lists.commands(first, nothing) == ((Stop("gap-new", asked_by="gap-"),), {})
    assert lists.commands(replace(first, batch=1), nothing) == ((), {})


def test_a_comparison_that_an_earlier_release_left_open_is_closed(tmp_path: Path) -> None:
    stuck = Offset("new", 40, _STREAM, TopicLayout(1), signal_positions={"gap": 1})
    assert GapLists(SnapshotSettings(), Files(str(tmp_path))).commands(stuck, nothing) == ((), {"gap": "closed"})
