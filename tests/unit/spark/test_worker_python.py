"""The interpreter that Spark is told to run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import incsnap

_RUN = "from incsnap.spark.worker_python import main; main()"


def test_another_incsnap_in_the_working_directory_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "incsnap").mkdir()
    (tmp_path / "incsnap" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    ask = "import incsnap; print(incsnap.__file__)"
    start = f"import sys; sys.path.pop(0); sys.argv = ['incsnap-python', '-c', {ask!r}]; {_RUN}"

    run = subprocess.run(
        [sys.executable, "-c", start], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )

    assert (run.returncode, run.stdout.strip()) == (0, incsnap.__file__), run.stderr
