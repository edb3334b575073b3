"""The archive of classes: made from the list of one run, used by the next, in nobody's way when it is of no use."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from incsnap.pipeline import class_archive
from incsnap.pipeline.class_archive import ClassArchive
from tests.support.waiting import wait_until

HOME = _find_spark_home()
#: One of Spark's jars, with a class that needs no other.
JAR = next((Path(HOME) / "jars").glob("py4j-*.jar"))
MAIN = "py4j.GatewayServer"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "_SETTLE_SECONDS", 0.0)


def java(options: str, *more: str) -> str:
    """What a JVM says that loads the class and ends, because a word is no port."""
    command = [str(class_archive._java()), *options.split(), *more, "-cp", str(JAR), MAIN, "no-port"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.stderr.startswith("usage:")
    return found.stdout


def made(folder: Path) -> Path:
    """The archive that a first run leaves in ``folder``."""
    archive = ClassArchive({}, HOME, folder)
    java(archive.options())
    archive.make_later(str(JAR))
    wait_until(lambda: bool(list(folder.glob("*.jsa"))), 60)
    archive.close()
    wait_until(lambda: len(list(folder.iterdir())) == 2, 10)  # the archive and its lock
    (file,) = folder.glob("*.jsa")
    return file


def test_the_second_run_takes_its_classes_from_the_archive_that_the_first_has_made(tmp_path: Path) -> None:
    file = made(tmp_path)
    options = ClassArchive({}, HOME, tmp_path).options()
    assert str(file) in options
    loaded = [line for line in java(options, "-Xlog:class+load").splitlines() if f"{MAIN} " in line]
    assert [line.rpartition("source: ")[2] for line in loaded] == ["shared objects file"]


def test_a_damaged_archive_is_neither_used_nor_spoken_of(tmp_path: Path) -> None:
    file = made(tmp_path)
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:10_000])
    assert java(ClassArchive({}, HOME, tmp_path).options()) == ""


def test_an_archive_of_other_jars_is_neither_used_nor_spoken_of(tmp_path: Path) -> None:
    made(tmp_path)
    options = ClassArchive({}, HOME, tmp_path).options()
    command = [str(class_archive._java()), *options.split(), "-cp", str(tmp_path), "-version"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=True).stdout == b""


def test_an_archive_that_java_cannot_make_is_tried_once(tmp_path: Path) -> None:
    archive = ClassArchive({}, HOME, tmp_path)
    listed = Path(archive.options().partition("=")[2])
    listed.write_text("@no-word-of-such-a-list\n")
    archive.make_later(str(JAR))
    wait_until(lambda: bool(list(tmp_path.glob("*.failed"))), 60)
    archive.close()
    assert ClassArchive({}, HOME, tmp_path).options() == ""


def test_what_is_chosen_by_the_user_is_left_alone(tmp_path: Path) -> None:
    for option in ("-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa"):
        assert ClassArchive({"spark.driver.extraJavaOptions": option}, HOME, tmp_path).options() == ""


def test_another_java_or_another_class_path_has_an_archive_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path)
    assert "SharedArchiveFile" in ClassArchive({}, HOME, tmp_path).options()
    more_jars = ClassArchive({"spark.driver.extraClassPath": "/mine.jar"}, HOME, tmp_path)
    assert "DumpLoadedClassList" in more_jars.options()
    java_home = tmp_path / "java"
    (java_home / "bin").mkdir(parents=True)
    (java_home / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    assert "DumpLoadedClassList" in ClassArchive({}, HOME, tmp_path).options()


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert ClassArchive({}, HOME, tmp_path / "file" / "classes").options() == ""


def test_a_stop_gives_up_the_archive_that_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "_SETTLE_SECONDS", 60.0)
    archive = ClassArchive({}, HOME, tmp_path)
    java(archive.options())
    archive.make_later(str(JAR))
    archive.close()
    assert list(tmp_path.iterdir()) == []
