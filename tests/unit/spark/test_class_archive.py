"""The archive of classes: made from the list of one run, used by the next, in nobody's way when it is of no use."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock
from pyspark.find_spark_home import _find_spark_home

from incsnap.spark import class_archive
from incsnap.spark.class_archive import ClassArchive
from incsnap.spark.java import spark_java
from tests.support.waiting import PATIENCE_SECONDS, wait_until

HOME = _find_spark_home()
#: One of Spark's jars, with a class that needs no other.
JAR = next((Path(HOME) / "jars").glob("py4j-*.jar"))
MAIN = "py4j.GatewayServer"


_LIFE = ExitStack()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(class_archive, "_SETTLE_SECONDS", 0.0)
    with _LIFE:
        yield


def archive_in(folder: Path, **spark: str) -> ClassArchive:
    """The archive of a job of this test; ``spark``: properties without ``spark.driver.``. Closed when the test ends."""
    archive = ClassArchive({f"spark.driver.{name}": value for name, value in spark.items()}, HOME, folder)
    _LIFE.callback(archive.close)
    return archive


def java(options: str, *further: str) -> str:
    """What a JVM says that loads the class and ends, because a word is no port."""
    command = [str(spark_java()), *options.split(), *further, "-cp", str(JAR), MAIN, "no-port"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.stderr.startswith("usage:")
    return run.stdout


def archive_left_in(folder: Path) -> Path:
    """The archive that a first run leaves in ``folder``."""
    archive = archive_in(folder)
    java(archive.options())
    archive.make_later(str(JAR))
    wait_until(lambda: archive._file.exists() and {each.suffix for each in folder.iterdir()} == {".jsa", ".lock"})
    return archive._file


def test_the_second_run_takes_its_classes_from_the_archive_that_the_first_has_made(tmp_path: Path) -> None:
    file = archive_left_in(tmp_path)
    options = archive_in(tmp_path).options()
    assert str(file) in options
    loaded = [line for line in java(options, "-Xlog:class+load").splitlines() if f"{MAIN} " in line]
    assert [line.rpartition("source: ")[2] for line in loaded] == ["shared objects file"]


def test_the_archive_is_mapped_where_it_was_made_for_and_so_not_changed(tmp_path: Path) -> None:
    archive_left_in(tmp_path)
    log = java(archive_in(tmp_path).options(), "-Xlog:cds=info").splitlines()
    regions = [line for line in log if "Mapped" in line and line.endswith(("(ReadWrite)", "(ReadOnly)"))]
    assert len(regions) == 2
    assert [line for line in regions if "base 0x00000008" not in line] == []


def test_a_damaged_archive_is_neither_used_nor_spoken_of(tmp_path: Path) -> None:
    file = archive_left_in(tmp_path)
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:10_000])
    assert java(archive_in(tmp_path).options()) == ""


def test_an_archive_of_other_jars_is_neither_used_nor_spoken_of(tmp_path: Path) -> None:
    archive_left_in(tmp_path)
    options = archive_in(tmp_path).options()
    command = [str(spark_java()), *options.split(), "-cp", str(tmp_path), "-version"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=True).stdout == b""


def test_an_archive_that_java_cannot_make_is_tried_once(tmp_path: Path) -> None:
    archive = archive_in(tmp_path)
    listed = Path(archive.options().partition("=")[2])
    listed.write_text("@no-word-of-such-a-list\n")
    archive.make_later(str(JAR))
    wait_until(lambda: bool(list(tmp_path.glob("*.failed"))))
    archive.close()
    assert archive_in(tmp_path).options() == ""


def test_an_archive_in_use_stays_however_many_others_are_made_and_an_old_one_goes(tmp_path: Path) -> None:
    users = [archive_in(tmp_path, extraClassPath=f"/{at}.jar") for at in range(class_archive._KEPT + 2)]
    # Nobody has used them for long: the first for longest.
    for age, user in enumerate(users, 1):
        user._file.write_bytes(b"")
        os.utime(user._file, (age, age))
    first, second, *_ = users
    assert str(first._file) in first.options()
    os.utime(first._file, (0, 0))
    file = archive_left_in(tmp_path)
    kept = {path.name for path in tmp_path.glob("*.jsa")}
    assert {first._file.name, file.name} <= kept
    assert second._file.name not in kept, "nobody uses it, and it is the oldest"
    assert len(kept) == class_archive._KEPT + 1
    first.close()
    file.unlink()
    archive_left_in(tmp_path)
    assert not first._file.exists(), "nobody uses it any more"


def test_the_archive_that_was_used_last_is_kept_and_not_the_one_that_was_made_last(tmp_path: Path) -> None:
    archives = [ClassArchive({"spark.driver.extraClassPath": f"/{at}.jar"}, HOME, tmp_path) for at in range(9)]
    for age, each in enumerate(archives, 1):
        each._file.write_bytes(b"")
        os.utime(each._file, (age, age))
    used = archives[0]
    used.options()
    used.close()
    archive_left_in(tmp_path)
    assert used._file.exists()


def test_an_archive_that_vanishes_before_java_looks_for_it_is_done_without(tmp_path: Path) -> None:
    file = archive_left_in(tmp_path)
    options = archive_in(tmp_path).options()
    file.unlink()
    assert java(options) == ""


def test_an_archive_that_another_is_removing_is_taken_for_gone(tmp_path: Path) -> None:
    file = archive_left_in(tmp_path)
    with file.open("rb") as removing:
        fcntl.flock(removing, fcntl.LOCK_EX)
        archive = archive_in(tmp_path)
        assert "DumpLoadedClassList" in archive.options()
        archive.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's order of who goes first")
def test_the_making_is_what_the_kernel_ends_first_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java, seen = tmp_path / "home" / "bin" / "java", tmp_path / "seen"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\necho "$(cat /proc/self/oom_score_adj) $1" > {seen}\nexit 1\n')
    java.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    archive = archive_in(tmp_path)
    Path(archive.options().partition("=")[2]).write_text("")
    archive.make_later(str(JAR))
    wait_until(lambda: bool(list(tmp_path.glob("*.failed"))))
    archive.close()
    assert seen.read_text() == "1000 -Xshare:dump\n"


def test_lists_of_jobs_that_were_killed_are_taken_away(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait(PATIENCE_SECONDS)
    left, of_another = tmp_path / f"0123.{ended.pid}.classes", tmp_path / f"0123.{os.getppid()}.classes"
    left.touch()
    of_another.touch()
    archive = archive_in(tmp_path)
    Path(archive.options().partition("=")[2]).write_text("@no-word-of-such-a-list\n")
    archive.make_later(str(JAR))
    wait_until(lambda: not left.exists())
    archive.close()
    assert of_another.exists()


def test_it_is_not_made_while_another_job_makes_it(tmp_path: Path) -> None:
    archive = ClassArchive({}, HOME, tmp_path)
    listed = Path(archive.options().partition("=")[2])
    java(archive.options())
    with FileLock(tmp_path / f"{listed.name.partition('.')[0]}.lock"):
        archive.make_later(str(JAR))
        wait_until(lambda: not listed.exists())
    archive.close()
    assert {file.suffix for file in tmp_path.iterdir()} == {".lock"}


def test_it_is_not_made_where_a_limit_leaves_too_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def little() -> int:
        calls.append(1)
        return 300 << 20

    monkeypatch.setattr(class_archive, "memory_left", little)
    archive = archive_in(tmp_path)
    listed = Path(archive.options().partition("=")[2])
    java(archive.options())
    archive.make_later(str(JAR))
    wait_until(lambda: not listed.exists())
    archive.close()
    assert calls
    assert {file.suffix for file in tmp_path.iterdir()} == {".lock"}


def test_what_is_chosen_by_the_user_is_left_alone(tmp_path: Path) -> None:
    for option in ("-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa"):
        assert archive_in(tmp_path, extraJavaOptions=option).options() == ""


def test_another_java_or_another_class_path_has_an_archive_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive_left_in(tmp_path)
    assert "SharedArchiveFile" in archive_in(tmp_path).options()
    more_jars = archive_in(tmp_path, extraClassPath="/mine.jar")
    assert "DumpLoadedClassList" in more_jars.options()
    java_home = tmp_path / "java"
    (java_home / "bin").mkdir(parents=True)
    (java_home / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    assert "DumpLoadedClassList" in archive_in(tmp_path).options()


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert archive_in(tmp_path / "file" / "classes").options() == ""


def test_a_stop_gives_up_the_archive_that_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "_SETTLE_SECONDS", 60.0)
    archive = archive_in(tmp_path)
    java(archive.options())
    archive.make_later(str(JAR))
    archive.close()
    assert list(tmp_path.iterdir()) == []
