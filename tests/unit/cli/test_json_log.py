"""Every line that `incsnap run` writes to stderr is JSON with `incsnap.log.format=json`, also when it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.properties import QUIET

#: What happens in a command that has read its settings, and a part of the line about it.
_ENDS = [
    ("raise RuntimeError('a defect')", "a defect"),
    ("raise KeyboardInterrupt", "Interrupted."),
    ("import threading; crash = threading.Thread(target=lambda: 1 / 0); crash.start(); crash.join(60)", "division"),
    ("import warnings; warnings.warn('an old name')", "an old name"),
]


def _lines(program: str) -> list[dict[str, str]]:
    """Return the lines that a Python program writes to stderr."""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30.0, check=False)
    assert ended.stderr
    return [json.loads(line) for line in ended.stderr.splitlines()]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    file = tmp_path / "shop.properties"
    lines = {**QUIET, "incsnap.log.format": "json", "checkpoint.location": str(tmp_path)}
    file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return file


def _run(job: Path, before: str = "") -> list[dict[str, str]]:
    return _lines(
        f"import sys; sys.argv[1:] = ['run', {str(job)!r}]\n{before}\nfrom incsnap.cli.main import main; main()"
    )


def test_settings_that_are_refused_are_lines_of_json(job: Path) -> None:
    job.write_text(job.read_text().replace("snapshot.mode=no_data", "snapshot.mode=bogus"))

    (line,) = _run(job)

    assert (line["level"], "snapshot.mode" in line["message"]) == ("ERROR", True)


@pytest.mark.parametrize(("end", "text"), _ENDS)
def test_crashes_and_interruptions_are_lines_of_json(end: str, text: str, job: Path) -> None:
    # The package has a function `load`, which hides the module of this name.
    module = "import incsnap.config; load = sys.modules['incsnap.config.load']"
    raising = f"{module}\ndef read(*rest):\n    {end}\n    sys.exit(1)\nload.read = read"

    (line,) = _run(job, raising)

    assert text in line["message"]
    assert line["level"] != "ERROR" or "exception" in line
