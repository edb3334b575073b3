"""The rows of a second job: on the job's checkpoint, on an older copy of it, or with its topic.prefix."""

from __future__ import annotations

import shutil
import time

from lab.running_job import RunningJob, running_job, write_properties
from tests.faults.trial import Trial

_SECONDS = 240.0


def same_checkpoint(trial: Trial, number: int) -> None:
    """Start a second job on the checkpoint. It is refused, and the first job is not disturbed."""
    folder = trial.play.folder
    path = write_properties(folder / "second.properties", trial.play.properties(trial.settings))
    trial.reads()
    with running_job(path, folder / f"second-{number}.log", trial.play.checkpoint) as second:
        _ended(trial, second)
        assert second.exit_code() == 2, second.log_tail()
        assert "Another incsnap runs on the checkpoint" in second.log_tail(), second.log_tail()
    trial.done["second refused"] += 1


def older_copy(trial: Trial, number: int) -> None:
    """Start a second job on an older copy of the checkpoint. It is refused, and the first job is not disturbed."""
    folder = trial.play.folder
    copy = folder / f"copy-{number}"
    trial.reads()
    trial.job.kill()
    shutil.copytree(trial.play.checkpoint, copy)
    trial.start()
    trial.goes_on()
    trial.reads()
    more = {**trial.settings, "checkpoint.location": str(copy)}
    path = write_properties(folder / "copy.properties", trial.play.properties(more))
    with running_job(path, folder / f"copy-{number}.log", copy) as second:
        _ended(trial, second)
        assert second.exit_code() == 2, second.log_tail()
        assert "runs with this topic.prefix" in second.log_tail(), second.log_tail()
    trial.done["copy refused"] += 1
    shutil.rmtree(copy)


def same_prefix(trial: Trial, number: int) -> None:
    """Start a second job with the same topic.prefix for other tables. It is refused; the first job is not disturbed."""
    folder = trial.play.folder
    trial.reads()
    more = {
        **trial.settings,
        "checkpoint.location": str(folder / f"other-{number}"),
        "table.include.list": str(trial.play.signals).replace(".", "\\."),
        "signal.enabled.channels": "file",
        "signal.file": str(folder / "none.txt"),
        "notification.enabled.channels": "log",
    }
    path = write_properties(folder / "other.properties", trial.play.properties(more))
    with running_job(path, folder / f"other-{number}.log", folder / f"other-{number}") as second:
        _ended(trial, second)
        assert second.exit_code() == 2, second.log_tail()
        assert "runs with this topic.prefix" in second.log_tail(), second.log_tail()
        assert trial.job.exit_code() is None, trial.job.log_tail()
    trial.done["second refused"] += 1


def _ended(trial: Trial, job: RunningJob) -> None:
    deadline = time.monotonic() + _SECONDS
    while job.exit_code() is None:
        trial.keep_reading()
        assert time.monotonic() < deadline, f"it did not end in {_SECONDS:.0f} s:\n{job.log_tail()}"
        time.sleep(0.05)
