"""The outages of a job's servers: their log lines, and the state of a job that waits for a server."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from incsnap.errors import ServerUnreachable, SinkError
from incsnap.monitoring.health import ready
from incsnap.monitoring.job_status import Watch, failure_of
from incsnap.monitoring.outages import KAFKA, MYSQL, Outages
from incsnap.monitoring.planner_report import PlannerReport, write
from incsnap.monitoring.status import RETRYING, RUNNING, STARTING, STOPPED, SnapshotStatus, StreamStatus, Sums
from tests.support.waiting import wait_until

_FAR_MS = 10**13
_STREAM = StreamStatus(7, "binlog.000002", 1234, "uuid:1-9")


class _NoStore:
    def write(self, name: str, content: bytes) -> None: ...


def _watch(outages: Outages | None = None) -> Watch:
    return Watch("shop", _NoStore(), Sums, every_seconds=0.01, outages=outages)


def _report(path: Path, *, connected: bool = True, delivered: bool = True, disconnects: int = 0) -> None:
    stream = replace(_STREAM, connected=connected, disconnects=disconnects)
    write(path, PlannerReport(_FAR_MS, 1, stream, SnapshotStatus(), (), delivered))


def test_an_outage_logs_its_beginning_a_line_now_and_then_and_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    outages = Outages({KAFKA: "k:9092"}, log_seconds=0.2)

    outages.fails(KAFKA, "timed out")
    outages.fails(KAFKA, "timed out")
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("Kafka at k:9092 does not answer since 20")

    def said_again() -> bool:
        outages.fails(KAFKA, "refused")
        return len(caplog.messages) == 2

    wait_until(said_again)
    assert [(each.server, each.address, each.reason) for each in outages.current()] == [(KAFKA, "k:9092", "refused")]
    outages.answers(KAFKA)

    assert caplog.messages[2].startswith("Kafka at k:9092 answers again, after 0.")
    assert outages.current() == ()
    outages.close()


def test_mysql_is_asked_only_while_it_is_in_doubt() -> None:
    asked: list[int] = []
    reasons = ["refused"]

    def ask() -> str:
        asked.append(1)
        return reasons[-1]

    outages = Outages({MYSQL: "db:3306"}, ask, ask_seconds=0.01)
    assert not asked
    outages.doubt(in_doubt=True)
    wait_until(lambda: bool(outages.current()))
    # An open outage is asked about until it ends.
    outages.doubt(in_doubt=False)
    reasons.append("")
    wait_until(lambda: not outages.current())
    outages.close()


def test_a_run_counts_as_running_when_the_server_sends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watch, report = _watch(), tmp_path / "report.json"
    watch.follow(report, "shop.*")
    _report(report, connected=False)
    wait_until(lambda: watch.status().stream is not None)
    assert watch.status().state == STARTING
    assert "Streaming to topics shop.*" not in caplog.messages

    _report(report)
    wait_until(lambda: watch.status().state == RUNNING)
    watch.close(STOPPED)
    assert caplog.messages.count("Streaming to topics shop.*") == 1


def test_a_new_try_is_not_running_before_it_delivers(tmp_path: Path) -> None:
    watch = _watch()
    watch.enter(RETRYING, failure_of(SinkError("Kafka failed committing"), 2))
    report = tmp_path / "report.json"
    watch.follow(report)
    _report(report, delivered=False)
    wait_until(lambda: watch.status().stream is not None)
    assert watch.status().state == RETRYING
    stream = watch.status().stream
    assert stream is not None
    assert stream.connected
    assert ready(watch.status()) == "it is retrying: Kafka failed committing"

    _report(report)
    wait_until(lambda: watch.status().state == RUNNING)
    watch.close(STOPPED)


def test_a_server_that_does_not_answer_makes_the_job_retrying(tmp_path: Path) -> None:
    outages = Outages({KAFKA: "k:9092"})
    watch, report = _watch(outages), tmp_path / "report.json"
    watch.follow(report)
    _report(report)
    wait_until(lambda: watch.status().state == RUNNING)

    outages.fails(KAFKA, "timed out")
    wait_until(lambda: watch.status().state == RETRYING)
    status = watch.status()
    assert status.failure is not None
    assert status.failure.count == 1
    assert status.stream is not None
    assert status.stream.connected
    outages.fails(MYSQL, "refused")
    wait_until(lambda: (now := watch.status().stream) is not None and not now.connected)
    outages.answers(MYSQL)
    assert ready(status).startswith("it is retrying: Kafka at k:9092 does not answer since ")
    outages.answers(KAFKA)
    wait_until(lambda: watch.status().state == RUNNING)
    watch.close(STOPPED)


def test_lost_connections_are_counted_over_the_runs_of_the_query(tmp_path: Path) -> None:
    watch, first, second = _watch(), tmp_path / "1.json", tmp_path / "2.json"

    def lost() -> int:
        stream = watch.status().stream
        return stream.disconnects if stream is not None else -1

    _report(first, disconnects=2)
    watch.follow(first)
    wait_until(lambda: lost() == 2)
    # The connection of the first run was open at its end, so it ended with the run.
    watch.enter(RETRYING, failure_of(ServerUnreachable("gone"), 1))
    _report(second, disconnects=1)
    watch.follow(second)
    wait_until(lambda: lost() == 4)
    watch.close(STOPPED)
