"""The archive of classes: one run's list makes it, later runs use it, and a job without one runs as before."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from incsnap.spark.launch import class_archive
from incsnap.spark.launch.class_archive import ClassArchive, spark_java

HOME = _find_spark_home()
#: One of Spark's jars, with a class that needs no other class.
JAR = next((Path(HOME) / "jars").glob("py4j-*.jar"))
MAIN = "py4j.GatewayServer"


_LIFE = ExitStack()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    with _LIFE:
        yield


def archive_in(folder: Path, **spark: str) -> ClassArchive:
    """Return the archive of a job in this test. It is closed when the test ends.

    `spark`: properties, without their prefix `spark.driver.`.
    """
    archive = ClassArchive({f"spark.driver.{name}": value for name, value in spark.items()}, HOME, folder)
    _LIFE.callback(archive.close)
    return archive


def options_of(archive: ClassArchive) -> str:
    return archive.used_in({})["spark.driver.defaultJavaOptions"].strip()


def java(options: str, *further: str) -> str:
    """Start a JVM that loads the class, and return its stdout. It ends at once, because its argument is no port."""
    command = [str(spark_java()), *options.split(), *further, "-cp", str(JAR), MAIN, "no-port"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.stderr.startswith("usage:")
    return run.stdout


def archive_made_in(folder: Path) -> Path:
    """Make the archive in `folder` from the list of a JVM, and return its file."""
    archive = archive_in(folder)
    with archive.preparing() as work:
        assert work is not None
        java(f"-XX:DumpLoadedClassList={work}/classes")
        archive.make(work / "classes", str(JAR))
    assert {each.suffix for each in folder.iterdir()} <= {".jsa", ".lock"}
    return archive._file


def test_the_second_run_takes_its_classes_from_the_archive_that_the_first_has_made(tmp_path: Path) -> None:
    file = archive_made_in(tmp_path)
    options = options_of(archive_in(tmp_path))
    assert str(file) in options
    loaded = [line for line in java(options, "-Xlog:class+load").splitlines() if f"{MAIN} " in line]
    assert [line.rpartition("source: ")[2] for line in loaded] == ["shared objects file"]


def test_the_archive_is_mapped_where_it_was_made_for_and_so_not_changed(tmp_path: Path) -> None:
    archive_made_in(tmp_path)
    log = java(options_of(archive_in(tmp_path)), "-Xlog:cds=info").splitlines()
    regions = [line for line in log if "Mapped" in line and line.endswith(("(ReadWrite)", "(ReadOnly)"))]
    assert len(regions) == 2
    assert [line for line in regions if "base 0x00000008" not in line] == []


def test_a_damaged_archive_is_neither_used_nor_spoken_of(tmp_path: Path) -> None:
    file = archive_made_in(tmp_path)
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:10_000])
    assert java(options_of(archive_in(tmp_path))) == ""


def test_an_archive_of_other_jars_is_neither_used_nor_spoken_of(tmp_path: Path) -> None:
    archive_made_in(tmp_path)
    options = options_of(archive_in(tmp_path))
    command = [str(spark_java()), *options.split(), "-cp", str(tmp_path), "-version"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=True).stdout == b""


def test_an_archive_that_java_cannot_make_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    archive = archive_in(tmp_path)
    with archive.preparing() as work:
        assert work is not None
        (work / "classes").write_text("@no-word-of-such-a-list\n")
        archive.make(work / "classes", str(JAR))

    assert archive.file() is None
    assert "The archive of classes was not made" in caplog.text


def test_a_preparation_waits_for_another_and_removes_what_a_killed_one_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archive, "_MAKE_SECONDS", 0.1)
    (tmp_path / "prepare-killed").mkdir()
    with archive_in(tmp_path).preparing() as first, archive_in(tmp_path).preparing() as second:
        assert first is not None
        assert second is None
        assert [file.name for file in tmp_path.glob("prepare-*")] == [first.name]


def test_an_archive_in_use_stays_however_many_others_are_made_and_an_old_one_goes(tmp_path: Path) -> None:
    users = [archive_in(tmp_path, extraClassPath=f"/{at}.jar") for at in range(class_archive._KEPT + 2)]
    # None was used lately; the first has the oldest use.
    for age, user in enumerate(users, 1):
        user._file.write_bytes(b"")
        os.utime(user._file, (age, age))
    first, second, *_ = users
    assert str(first._file) in options_of(first)
    os.utime(first._file, (0, 0))
    file = archive_made_in(tmp_path)
    kept = {path.name for path in tmp_path.glob("*.jsa")}
    assert {first._file.name, file.name} <= kept
    assert second._file.name not in kept, "nobody uses it, and it is the oldest"
    assert len(kept) == class_archive._KEPT + 1
    first.close()
    file.unlink()
    archive_made_in(tmp_path)
    assert not first._file.exists(), "nobody uses it any more"


def test_the_archive_that_was_used_last_is_kept_and_not_the_one_that_was_made_last(tmp_path: Path) -> None:
    archives = [ClassArchive({"spark.driver.extraClassPath": f"/{at}.jar"}, HOME, tmp_path) for at in range(9)]
    for age, each in enumerate(archives, 1):
        each._file.write_bytes(b"")
        os.utime(each._file, (age, age))
    used = archives[0]
    options_of(used)
    used.close()
    archive_made_in(tmp_path)
    assert used._file.exists()


def test_an_archive_that_vanishes_before_java_looks_for_it_is_done_without(tmp_path: Path) -> None:
    file = archive_made_in(tmp_path)
    options = options_of(archive_in(tmp_path))
    file.unlink()
    assert java(options) == ""


def test_an_archive_that_another_is_removing_is_taken_for_gone(tmp_path: Path) -> None:
    file = archive_made_in(tmp_path)
    with file.open("rb") as removing:
        fcntl.flock(removing, fcntl.LOCK_EX)
        archive = archive_in(tmp_path)
        assert options_of(archive) == ""
        archive.close()


def test_jvm_options_of_the_user_are_kept(tmp_path: Path) -> None:
    archive_made_in(tmp_path)
    for option in ("-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa"):
        archive = archive_in(tmp_path, extraJavaOptions=option)
        assert options_of(archive) == ""
        with archive.preparing() as folder:
            assert folder is None


def test_another_java_or_another_class_path_has_an_archive_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive_made_in(tmp_path)
    assert "SharedArchiveFile" in options_of(archive_in(tmp_path))
    more_jars = archive_in(tmp_path, extraClassPath="/mine.jar")
    assert options_of(more_jars) == ""
    java_home = tmp_path / "java"
    (java_home / "bin").mkdir(parents=True)
    (java_home / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    assert options_of(archive_in(tmp_path)) == ""


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    archive = archive_in(tmp_path / "file" / "classes")

    with archive.preparing() as folder:
        assert folder is None
    assert options_of(archive) == ""
    assert f"cannot be written to {tmp_path}/file/classes" in caplog.text
