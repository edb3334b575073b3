"""The JVM that boots before the session. A program that reads its standard input, as the JVM does, stands in for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from incsnap.spark.launch.gateway import Gateway
from tests.support.waiting import PATIENCE_SECONDS, wait_until

_JOB = """
import sys, time
from incsnap.spark.launch.gateway import Gateway
gateway = Gateway({}, sys.argv[1])
print("booting", flush=True)
time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    program = tmp_path / "spark" / "bin" / "spark-submit"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexec cat >/dev/null\n")
    program.chmod(0o700)
    return tmp_path / "spark"


def test_the_next_start_clears_away_what_killed_jobs_have_left_and_nothing_else(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The path must be short enough for a socket.
    with tempfile.TemporaryDirectory(prefix="jvm-", dir="/tmp") as name:
        folder = Path(name)
        monkeypatch.setattr(tempfile, "tempdir", name)
        command = [sys.executable, "-c", _JOB, str(home)]
        jobs = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": name})
            for _ in range(2)
        ]
        try:
            assert [job.stdout.readline() for job in jobs if job.stdout] == ["booting\n"] * 2
            assert len(list(folder.iterdir())) == 2
            jobs[0].kill()
            jobs[0].wait(PATIENCE_SECONDS)
            assert len(list(folder.iterdir())) == 2, "nobody was there to remove it"

            own = Gateway({}, str(home))
            assert len(list(folder.iterdir())) == 3, "its JVM may still boot, and would never end without it"
            own.close()
            for left in folder.iterdir():
                os.utime(left, (0, 0))
            own = Gateway({}, str(home))
            assert len(list(folder.iterdir())) == 2, "that of the job which runs, and ours"
            own.close()
            assert len(list(folder.iterdir())) == 1
        finally:
            for job in jobs:
                job.kill()
                job.communicate(timeout=PATIENCE_SECONDS)


def test_a_jvm_that_still_boots_is_ended_before_its_folder_goes(tmp_path: Path) -> None:
    """If Spark cannot write its address, it prints a stack trace above the error of the refused start."""
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "spark-submit"
    program.write_text(
        f'#!/bin/sh\nfolder=$(dirname "$_PYSPARK_DRIVER_CONN_INFO_PATH")\ntouch {tmp_path}/boots\n'
        f"cat >/dev/null\n[ -d $folder ] || touch {tmp_path}/complains\n"
    )
    program.chmod(0o755)
    gateway = Gateway({}, str(home))
    try:
        wait_until((tmp_path / "boots").exists)
    finally:
        gateway.close()

    assert not (tmp_path / "complains").exists()


def test_a_secret_stands_on_no_command_line(tmp_path: Path) -> None:
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "spark-submit"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/told\n')
    program.chmod(0o755)
    properties = {"spark.master": "local[1]", "spark.hadoop.fs.s3a.secret.key": "very-secret"}
    properties |= {"spark.hadoop.fs.s3a.access.key": "AKIA-OURS", "spark.ssl.keyPassword": "hidden"}
    gateway = Gateway(properties, str(home))
    try:
        wait_until((tmp_path / "told").exists)
    finally:
        gateway.close()

    command_line = (tmp_path / "told").read_text()
    assert "spark.master=local[1]" in command_line
    assert not any(secret in command_line for secret in ("very-secret", "AKIA-OURS", "hidden"))


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_what_the_jvm_prints_goes_to_stderr_in_the_format_of_the_log(tmp_path: Path, log_format: str) -> None:
    home = tmp_path / "spark"
    program = home / "bin" / "spark-submit"
    program.parent.mkdir(parents=True)
    lines = ("WARNING: Using incubator modules: x", "a line", '{"of": "a worker"}')
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}' >&2\n" for line in lines))
    program.chmod(0o700)
    job = f"""
from incsnap.cli.output import set_log_format, set_up_log
from incsnap.spark.launch.gateway import Gateway, JvmDidNotStart
set_up_log("info")
set_log_format({log_format!r})
gateway = Gateway({{}}, {str(home)!r})
try:
    with gateway.offered():
        pass
except JvmDidNotStart:
    gateway.close()
"""
    done = subprocess.run([sys.executable, "-c", job], capture_output=True, text=True, timeout=PATIENCE_SECONDS)

    first, second = done.stderr.splitlines()
    assert second == '{"of": "a worker"}'
    assert first == "a line" if log_format == "text" else json.loads(first)["message"] == "a line"
