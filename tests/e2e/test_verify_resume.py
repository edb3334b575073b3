"""`incsnap verify` that is interrupted by Ctrl-C, and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from incsnap.config.load import read
from incsnap.verify.kept_sides import kept_folder
from lab.captured_database import CapturedDatabase
from lab.running_job import write_properties
from lab.table_designs import ORDERS
from tests.e2e.test_verify import run_verify
from tests.support.delivery import send_first_snapshot
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers


def test_ctrl_c_stops_a_comparison_and_resume_goes_on(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 3_000)
    with play.job({"snapshot.mode": "initial"}) as job:
        send_first_snapshot(play, job)
        job.stop()
    path = write_properties(play.folder / "verify.properties", play.properties())
    folder = kept_folder(read(str(path), None).settings, (str(orders),), "")

    with play.connect() as connection, connection.cursor() as cursor:
        # The topic lacks this change, so the comparison waits until it is interrupted.
        cursor.execute(f"UPDATE {orders.sql} SET qty = qty + 1 WHERE id = 2")
        with running_verify(path, "--table", str(orders), "--wait", "250") as process:
            assert process.stderr is not None
            for line in process.stderr:
                sys.stdout.write(line)
                if "keys differ or changed meanwhile" in line:
                    break
            plan = json.loads((folder / "plan.json").read_text())
            os.kill(process.pid, signal.SIGINT)
            errors = process.communicate(timeout=PATIENCE_SECONDS)[1]
        assert process.returncode == 2
        assert "Stopped. 3,000 of" in errors
        assert f"incsnap verify {path} --table {orders} --resume" in errors
        assert "Traceback" not in errors
        next(folder.glob("records-*-000000.arrow")).unlink()
        (rows,) = folder.glob("rows-*-000000.arrow")
        kept = rows.stat().st_mtime_ns
        cursor.execute(f"UPDATE {orders.sql} SET qty = qty - 1 WHERE id = 2")

    refused = run_verify(path, "--resume")
    assert (refused[0], refused[1]) == (2, {})
    assert rows.stat().st_mtime_ns == kept
    code, answers = run_verify(path, "--table", str(orders), "--resume")
    assert (code, answers["orders"]["equal"]) == (0, True)
    # The answer is that of the comparison that was interrupted.
    assert answers["orders"]["gtid_set"] == plan["executed"]
    assert not list(folder.glob("*.arrow"))


@contextmanager
def running_verify(path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command until the block ends."""
    command = [sys.executable, "-m", "incsnap", "verify", str(path), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
