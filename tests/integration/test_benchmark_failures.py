"""A side that dies in the benchmark is told as such, and the others go on."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from benchmarks.backlogs import Backlogs
from benchmarks.benchmark_database import benchmark_database
from benchmarks.measured_jobs import DEBEZIUM, INCSNAP, Job, JobRun
from benchmarks.rows import Figures, Scale
from benchmarks.update_latency import NumberedUpdates
from benchmarks.warm_job import WarmJob
from incsnap.errors import ServerUnreachable
from lab.servers import Servers

pytestmark = pytest.mark.servers


@dataclass
class Notes:
    measurements: list[str] = field(default_factory=list)
    failures: list[tuple[list[str], str]] = field(default_factory=list)

    def measured(self, measurement: str, figures: Figures) -> None:
        self.measurements.append(measurement)

    def failed(self, measurements: Sequence[str], error: Exception) -> None:
        self.failures.append((list(measurements), str(error)))


class Dead(Job):
    """A job that does not start."""

    def life(self) -> AbstractContextManager[JobRun]:
        raise ServerUnreachable("Kafka Connect does not start")


class Mute(Job):
    """Starts, and has died by the first look."""

    def life(self) -> AbstractContextManager[JobRun]:
        def check() -> None:
            raise ServerUnreachable("incsnap ended with code 1")

        return contextlib.nullcontext(JobRun(-1, 0.0, check, check))


def test_rows_of_a_job_that_does_not_start_have_failed(servers: Servers, topic_prefix: str, tmp_path: Path) -> None:
    notes = Notes()
    with benchmark_database(servers, tmp_path) as bench:
        warm = WarmJob(bench, Scale(rows=1_000), {"start", "snapshot", "columns3"})

        warm.measure(lambda: Dead(INCSNAP, bench, topic_prefix, warm.tables, 1), notes)

    assert [rows for rows, _ in notes.failures] == [["start", "snapshot", "columns3"]]
    assert notes.measurements == []


def test_a_row_that_fails_leaves_the_rest_to_a_new_job(
    servers: Servers, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The job is up and warm: what is tried is what comes then.
    monkeypatch.setattr(NumberedUpdates, "wait_for_first", lambda *_: 1.0)
    monkeypatch.setattr("benchmarks.warm_job.warm_up", lambda *_: None)
    notes, jobs = Notes(), 0
    with benchmark_database(servers, tmp_path) as bench:
        warm = WarmJob(bench, Scale(rows=1_000), {"start", "columns3", "composite"})

        def new_job() -> Job:
            nonlocal jobs
            jobs += 1
            return Mute(INCSNAP, bench, f"{topic_prefix}-{jobs}", warm.tables, jobs)

        warm.measure(new_job, notes)

    assert notes.measurements == ["start"]
    assert notes.failures == [
        ([row], str(ServerUnreachable("incsnap ended with code 1"))) for row in ("columns3", "composite")
    ]
    assert jobs == 2


def test_a_side_that_fails_at_a_backlog_is_tried_with_a_new_job_at_the_next(
    servers: Servers, topic_prefix: str, tmp_path: Path
) -> None:
    notes = {DEBEZIUM: Notes(), INCSNAP: Notes()}
    with benchmark_database(servers, tmp_path) as bench:
        backlogs = Backlogs(bench, Scale(rows=1_000), {"backlog", "single"})

        def new_job(side: str) -> Job:
            return Dead(side, bench, f"{topic_prefix}-{side}", backlogs.tables, 1)

        backlogs.measure({side: partial(new_job, side) for side in notes}, notes)

    for each in notes.values():
        assert [rows for rows, _ in each.failures] == [["backlog"], ["single"]]
