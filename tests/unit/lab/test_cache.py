"""The cache of fetched servers: an entry is whole or absent, whoever dies while making it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing.synchronize import Event as EventOfProcesses
from pathlib import Path

import pytest

from lab import cache


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INCSNAP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_entry_is_built_once_and_its_downloads_are_thrown_away(root: Path) -> None:
    def build(folder: Path, downloads: Path) -> None:
        (downloads / "archive").write_text("bytes")
        (folder / "program").write_text("v1")

    def never(folder: Path, downloads: Path) -> None:
        pytest.fail("it is there already")

    first, second = cache.entry("x", build), cache.entry("x", never)

    assert first == second == root / "x"
    assert (first / "program").read_text() == "v1"
    assert not (root / "x.downloads").exists()


def test_a_failed_build_leaves_no_entry_but_keeps_what_it_downloaded(root: Path) -> None:
    def fail(folder: Path, downloads: Path) -> None:
        (folder / "half").touch()
        (downloads / "archive").write_text("bytes")
        raise OSError("network gone")

    with pytest.raises(OSError, match="network gone"):
        cache.entry("x", fail)
    assert not (root / "x").exists()

    def resume(folder: Path, downloads: Path) -> None:
        assert not list(folder.iterdir())
        assert (downloads / "archive").read_text() == "bytes"

    assert cache.entry("x", resume).is_dir()


def test_when_a_builder_is_killed_the_next_process_builds_anew(root: Path) -> None:
    context = multiprocessing.get_context("spawn")
    building = context.Event()
    builder = context.Process(target=_build_for_ever, args=(str(root), building))
    builder.start()
    assert building.wait(120), "the builder did not begin in 120 s"
    assert builder.pid is not None
    os.kill(builder.pid, signal.SIGKILL)
    builder.join()

    assert not list(cache.entry("x", lambda folder, downloads: None).iterdir())


def test_two_processes_at_once_build_one_entry(root: Path) -> None:
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_build_slowly, args=(str(root),)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()

    assert [process.exitcode for process in both] == [0, 0]
    assert len(list((root / "x").iterdir())) == 1


def _build_for_ever(root: str, building: EventOfProcesses) -> None:
    os.environ["INCSNAP_CACHE"] = root

    def build(folder: Path, downloads: Path) -> None:
        (folder / "half").touch()
        building.set()
        time.sleep(600)

    cache.entry("x", build)


def _build_slowly(root: str) -> None:
    os.environ["INCSNAP_CACHE"] = root

    def build(folder: Path, downloads: Path) -> None:
        time.sleep(0.3)
        (folder / str(os.getpid())).touch()

    cache.entry("x", build)
