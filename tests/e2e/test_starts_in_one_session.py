"""Two starts of one topic.prefix by `incsnap.start` in one program: the second is refused, or takes over."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from lab.captured_database import CapturedDatabase
from lab.child_programs import child
from lab.running_job import RunningJob, kill_session, write_properties
from tests.support.two_jobs import ROWS, insert, times_seen

pytestmark = [pytest.mark.servers, pytest.mark.long]


def test_a_second_start_in_a_program_is_refused_unless_it_takes_over(play: CapturedDatabase, tmp_path: Path) -> None:
    rows = play.create(ROWS, 10)
    other = {"checkpoint.location": str(tmp_path / "other"), "database.server.id": "777001"}
    files = [
        write_properties(tmp_path / "first.properties", play.properties()),
        write_properties(tmp_path / "second.properties", play.properties(other)),
    ]
    steps = tmp_path / "steps"

    def texts() -> dict[str, str]:
        lines = steps.read_text().splitlines() if steps.exists() else []
        return dict(json.loads(line) for line in lines)

    program = "tests.support.two_starts_in_one_session"
    command = [sys.executable, "-m", program, *map(str, files), str(tmp_path)]
    with child("two starts in one session", command, play.log) as started:
        job = RunningJob(started, play.checkpoint)
        try:
            job.wait_until("the second was refused", lambda: "refused" in texts())
            insert(play, range(1000, 1020))
            play.drain(job)
            (tmp_path / "replace").touch()
            job.wait_until("the first has ended", lambda: "first ended" in texts())
            insert(play, range(1020, 1040))
            play.drain(job)
            (tmp_path / "end").touch()
            job.wait_until("the second was stopped", lambda: "second stopped" in texts())
        finally:
            kill_session(started.pid)
    assert "runs with this topic.prefix" in texts()["refused"]
    assert "Another start of this topic.prefix has taken over" in texts()["first ended"]
    assert str(tmp_path / "other") in texts()["first ended"]
    assert texts()["second stopped"] == ""
    assert times_seen(play, play.topic(rows), range(1000, 1040)) == Counter({1: 40})
