"""A test of a job whose checkpoint is on a full disk: what it says, and that it goes on once there is space."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from incsnap.checkpoint.location import own_part
from incsnap.cli.main import commands
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.status import RETRYING, RUNNING, JobStatus, load
from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDERS

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system"),
]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 MB in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "incsnap-test", str(folder)],
        check=False,
        capture_output=True,
        timeout=30,
    )
    if mounted.returncode:
        pytest.skip(f"this machine does not mount a tmpfs: {mounted.stderr.decode()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True, timeout=30)


def test_a_full_disk_is_told_in_one_sentence_and_the_job_goes_on_afterwards(
    play: CapturedDatabase, small_disk: Path
) -> None:
    orders = play.create(ORDERS, 100)
    play.checkpoint = small_disk / "checkpoint"

    def status() -> JobStatus | None:
        path = Path(own_part(str(play.checkpoint))) / NAME
        return load(json.loads(path.read_text())) if path.exists() else None

    def is_in(state: str) -> bool:
        now = status()
        return now is not None and now.state == state

    def write_a_change() -> None:
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"UPDATE {orders.sql} SET qty = COALESCE(qty, 0) + 1 ORDER BY id LIMIT 1")

    with play.job() as job:
        job.wait_until("the job runs", lambda: is_in(RUNNING))
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
        before = len(play.log.read_text())

        def retries() -> bool:
            write_a_change()
            return is_in(RETRYING)

        job.wait_until("the status says that it retries", retries, every=1.0)
        now = status()
        assert now is not None
        assert now.failure is not None
        assert now.failure.message.startswith(f"no space left in checkpoint.location {play.checkpoint}")
        first_ms = now.written_ms
        job.wait_until(
            "the status is renewed without space", lambda: (s := status()) is not None and s.written_ms > first_ms
        )
        result = CliRunner().invoke(commands, ["status", str(play.folder / "incsnap.properties")])
        assert result.exit_code == 0
        assert "no space left" in result.output
        assert "Errno 28" not in play.log.read_text()[before:]
        assert "\tat " not in play.log.read_text()[before:]

        ballast.unlink()
        job.wait_until("the job goes on", lambda: is_in(RUNNING))
        play.drain(job)
        job.stop()
