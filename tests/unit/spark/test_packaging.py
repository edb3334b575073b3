"""The archive for a cluster's machines: its content, and that it runs where nothing else is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from incsnap.spark.cluster import packaging
from incsnap.spark.cluster.packaging import package, required
from lab.unpacking import unpack


def test_requirements_are_followed_with_extras_and_without_spark() -> None:
    packages = required("incsnap")

    assert {"incsnap", "numpy", "pyarrow", "python-dateutil"} <= set(packages)
    # authlib comes with confluent-kafka[schemaregistry]. The extra `test` of incsnap is not included.
    assert "authlib" in packages
    assert not {"pyspark", "py4j", "pytest"} & set(packages)


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an unpacked archive without the large packages, which would only take longer."""
    small = {name: each for name, each in required("incsnap").items() if name in ("incsnap", "click")}
    monkeypatch.setattr(packaging, "required", lambda name: small)
    archive, _ = package(tmp_path / "made")
    unpack(archive, tmp_path / "unpacked")
    return tmp_path / "unpacked"


def test_modules_of_an_archive_are_found_in_it_wherever_it_is_unpacked(unpacked: Path) -> None:
    assert (unpacked / "lib" / "incsnap" / "spark" / "log4j2.properties").is_file()
    assert (unpacked / "lib" / "signals" / "parse.py").is_file()
    assert not list((unpacked / "lib").glob("*editable*"))
    # The script, without the imports of `incsnap-python`, which this archive lacks.
    script = (unpacked / "bin" / "incsnap-python").read_text()
    look = "import incsnap, signals, click; print(incsnap.__file__, signals.__path__[0], click.__file__)"
    script = script.replace("from incsnap.spark.worker_python import main; main()", look)
    (unpacked / "bin" / "look").write_text(script)
    shell = ["sh", str(unpacked / "bin" / "look")]
    # A plain Python of the same version, without this environment's site packages.
    environment = {"PATH": "/usr/bin:/bin", "INCSNAP_PYTHON": sys._base_executable}  # type: ignore[attr-defined]

    ran = subprocess.run(shell, env=environment, capture_output=True, text=True, check=False, cwd="/", timeout=60)

    assert ran.returncode == 0, ran.stderr
    assert all(path.startswith(str(unpacked)) for path in ran.stdout.split()), ran.stdout


def test_the_main_file_is_the_command_line(tmp_path: Path, unpacked: Path) -> None:
    main = tmp_path / "made" / packaging.MAIN

    ran = subprocess.run(
        [sys.executable, str(main), "--version"], capture_output=True, text=True, check=False, timeout=60
    )

    assert ran.stdout.startswith("incsnap, version"), ran.stderr
