"""`incsnap status` for people: figures of a job that does not run are not shown as if they were present."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from incsnap.cli.status_display import shown
from incsnap.monitoring.liveness import liveness_of
from incsnap.monitoring.status import RUNNING, STOPPED, JobStatus
from tests.support.job_statuses import running

_STYLE = re.compile(r"\x1b\[([0-9;]*)m")


def _lines(status: JobStatus, later_ms: int = 0) -> list[str]:
    """Return the lines with their styles, `later_ms` milliseconds after the job has renewed its status."""
    now_ms = status.written_ms + later_ms
    console = Console(file=io.StringIO(), width=300, force_terminal=True, color_system="standard")
    with console.capture() as captured:
        console.print(shown(status, liveness_of(status, now_ms), now_ms))
    return captured.get().splitlines()


def _has(line: str, text: str) -> bool:
    """Return True if `text` is in the line, or begins it if `text` is the name of a line."""
    plain = _plain([line])
    return plain.startswith(text) if text.endswith(" ") else text in plain


def _plain(lines: list[str]) -> str:
    return _STYLE.sub("", "\n".join(lines))


@pytest.mark.parametrize(("state", "later_ms"), [(RUNNING, 3_600_000), (STOPPED, 0)])
def test_figures_of_a_job_that_does_not_run_are_dimmed_or_left_out(state: str, later_ms: int) -> None:
    job = running()
    assert job.stream is not None
    job = replace(job, state=state, stream=replace(job.stream, prepared=("x",)))
    live, old = _lines(replace(job, state=RUNNING)), _lines(job, later_ms)

    for text in (" rows/s, 12 s left", "snapshot rows/s", "━", "batch 123,456 took 52 ms"):
        assert text in _plain(live)
        assert text not in _plain(old)
    for text in ("lag ", "binlog ", "prepared ", "snapshot ", "gap ", "rows of about", "given up (quarantine)"):
        (of_live,), (of_old,) = ([line for line in lines if _has(line, text)] for lines in (live, old))
        assert "\x1b[2m" not in of_live
        assert "\x1b[2m" in of_old
        assert "\x1b[33m" not in of_old
        if text not in ("gap ", "given up (quarantine)"):
            assert "when the job was seen last" in of_old
            assert "when the job was seen last" not in of_live


def test_a_purge_that_was_near_is_no_alarm_of_a_job_that_does_not_run() -> None:
    job = running()
    assert job.stream is not None
    job = replace(job, stream=replace(job.stream, purge_not_before_ms=job.written_ms + 60_000))

    (live,), (old,) = (
        [line for line in _lines(each) if "purges" in line] for each in (job, replace(job, state=STOPPED))
    )

    assert "\x1b[31m" in live
    assert "\x1b[31m" not in old


def test_a_job_that_ended_without_a_snapshot_has_no_figures_to_dim() -> None:
    job = running()
    (line,) = (
        line
        for line in _lines(replace(job, state=STOPPED, snapshot=replace(job.snapshot, tables=(), waiting=0)))
        if _has(line, "snapshot ")
    )
    assert "none" in line
    assert "seen last" not in line
