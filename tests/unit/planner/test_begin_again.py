"""Tests of a job that begins again, without servers: what it inherits from the job before."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import first_offset, kept_first_offset
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner import begin_again
from incsnap.planner.gap_lists import is_unrepaired, open_positions
from incsnap.snapshot.offset import Offset, TopicLayout
from tests.support.job_settings import loaded_with

_STREAM = StreamPosition(GtidSet(), "", 0)


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
    monkeypatch.setattr(begin_again, "fence_others", lambda *_: None)

    begin_again.begin_again_where_lost(settings, root)

    first = kept_first_offset(Files(root))
    assert first is not None
    assert (first.job_id, first.signal_positions["file"]) == ("new", 7)
    assert is_unrepaired(first) == is_open
    assert (first.signal_positions["start"] == "closed") == is_open
