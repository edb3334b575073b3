"""A start that fails leaves no process behind. The JVM and the zygote run before the servers are asked."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from lab.addresses import MySqlAddress
from lab.running_job import RunningJob, running_job, write_properties
from tests.support.waiting import wait_until

SETTINGS = {
    "database.hostname": "127.0.0.1",
    "database.port": "1",
    "database.user": "no_such_user",
    "connect.timeout.ms": "1000",
    "topic.prefix": "shop",
    "snapshot.mode": "no_data",
    "signal.enabled.channels": "file",
    "bootstrap.servers": "127.0.0.1:1",
}


def job_at(folder: Path, mysql: MySqlAddress | None = None) -> tuple[Path, Path, Path]:
    """Return the files of a job that waits for its servers. With `mysql`, that server refuses the job's user."""
    server = {"database.hostname": mysql.host, "database.port": str(mysql.port)} if mysql else {}
    settings = {**SETTINGS, **server, "checkpoint.location": str(folder / "checkpoint")}
    return write_properties(folder / "job.properties", settings), folder / "log", folder / "checkpoint"


@pytest.mark.servers
def test_a_job_whose_servers_are_not_ready_leaves_no_process(
    mysql_address: MySqlAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A temporary folder for this test only: other jobs of this machine leave their folders elsewhere.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with running_job(*job_at(tmp_path, mysql_address)) as job:
        wait_until(lambda: job.exit_code() is not None)
        assert job.exit_code() == 2, job.log_tail()
        wait_until(lambda: not job.remains())
    assert "The servers are not ready" in (tmp_path / "log").read_text()
    assert list(tmp_path.glob("incsnap-*")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_start_that_is_broken_off_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    with running_job(*job_at(tmp_path)) as job:
        wait_until(lambda: len(job.remains()) >= 3)
        break_off(job, number)
        wait_until(lambda: job.exit_code() is not None)
        wait_until(lambda: not job.remains())


@pytest.mark.servers
def test_a_start_that_is_killed_as_another_begins_leaves_no_process(
    mysql_address: MySqlAddress, tmp_path: Path
) -> None:
    with running_job(*job_at(tmp_path)) as job:
        wait_until(lambda: len(job.remains()) >= 3)
        os.kill(job.pid, signal.SIGKILL)
        (tmp_path / "next").mkdir()
        with running_job(*job_at(tmp_path / "next", mysql_address)) as other:
            wait_until(lambda: other.exit_code() is not None)
        wait_until(lambda: not job.remains())


def break_off(job: RunningJob, number: signal.Signals) -> None:
    if number == signal.SIGINT:
        # A terminal sends the signal to all processes of the foreground.
        os.killpg(job.pid, number)
    else:
        os.kill(job.pid, number)
