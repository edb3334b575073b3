"""Waits until a running job has a part of its work behind it. A clean stop then leaves nothing of that part unsent."""

from __future__ import annotations

from contextlib import closing

from incsnap.checkpoint.status import read_status
from incsnap.mysql.watermarks import executed
from lab.captured_database import CapturedDatabase
from lab.running_job import RunningJob


def send_first_snapshot(play: CapturedDatabase, job: RunningJob) -> None:
    """Wait until the job has sent all rows of the snapshot of its start, and all that is written now."""
    job.wait_until("the snapshot's end", lambda: "The snapshot is complete" in play.log.read_text())
    play.drain(job)


def plan_all_changes(play: CapturedDatabase, job: RunningJob) -> None:
    """Wait until all that is written now is in batches. For topics in which `drain` would not recognise its marks."""
    with closing(play.connect()) as connection:
        written = executed(connection)

    def is_planned() -> bool:
        status = read_status(str(play.checkpoint))
        return status is not None and written <= status.delivered

    job.wait_until("the last change was planned", is_planned)
