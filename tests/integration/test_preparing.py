"""Tests of `incsnap prepare`, which makes the archive of classes before the first job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lab.running_job import INCSNAP


def prepare(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *INCSNAP, "prepare"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env={**os.environ, "COLUMNS": "300", **environment},
    )


def test_the_archive_is_made_once_and_shown() -> None:
    # In the session's own cache, where `make test` has made it: a minute of a processor that is spent once.
    first = prepare()
    assert first.returncode == 0, first.stderr
    assert "Traceback" not in first.stderr
    archive = Path(first.stdout.strip())
    made = archive.stat()
    again = prepare()
    assert (again.returncode, again.stdout, again.stderr) == (0, f"{archive}\n", "")
    assert (archive.stat().st_ino, archive.stat().st_size) == (made.st_ino, made.st_size)
    assert archive.suffix == ".jsa"


def test_a_cache_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = prepare(INCSNAP_CACHE=str(tmp_path / "file"))
    assert (result.returncode, result.stdout) == (0, "There is no archive of classes: jobs start without.\n")
