"""The interpreter that Spark runs as its Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import incsnap

#: A program that does what PySpark does with each argument for the JVM.
_HAND_OVER = """
import sys
from incsnap.spark.worker_python import leave_pandas_out, leave_pandas_out_of_the_driver
leave_pandas_out()
leave_pandas_out_of_the_driver()
from pyspark.sql.types import NumpyArrayConverter
print(NumpyArrayConverter().can_convert(1), "pandas" in sys.modules)
"""
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


def test_a_driver_that_hands_numbers_to_the_jvm_has_no_pandas() -> None:
    run = subprocess.run([sys.executable, "-c", _HAND_OVER], capture_output=True, text=True, check=False, timeout=60)

    assert (run.returncode, run.stdout.split()) == (0, ["False", "False"]), run.stderr
