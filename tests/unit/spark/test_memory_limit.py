"""What control groups leave of memory, in both of their versions."""

from __future__ import annotations

from pathlib import Path

from incsnap.spark.memory_limit import memory_left

_MB = 1 << 20


def group(folder: Path, limit: str, limit_is: str, taken: str, taken_is: int, statistics: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / limit).write_text(f"{limit_is}\n")
    (folder / taken).write_text(f"{taken_is}\n")
    (folder / "memory.stat").write_text(statistics)


def version_2(folder: Path, limit: str, taken: int, cache: int) -> None:
    statistics = f"anon {taken - cache}\ninactive_file {cache}\n"
    group(folder, "memory.max", limit, "memory.current", taken, statistics)


def left(tmp_path: Path, line: str) -> int | None:
    proc = tmp_path / "proc"
    proc.write_text(f"{line}\n")
    return memory_left(proc, tmp_path / "cgroup")


def test_what_the_cache_of_files_takes_can_be_had(tmp_path: Path) -> None:
    version_2(tmp_path / "cgroup" / "job", str(1_600 * _MB), 1_200 * _MB, 300 * _MB)
    assert left(tmp_path, "0::/job") == 700 * _MB


def test_the_limit_of_a_group_above_counts(tmp_path: Path) -> None:
    version_2(tmp_path / "cgroup" / "pod", str(1_000 * _MB), 900 * _MB, 0)
    version_2(tmp_path / "cgroup" / "pod" / "job", "max", 500 * _MB, 0)
    assert left(tmp_path, "0::/pod/job") == 100 * _MB


def test_the_first_version_is_read_where_it_is_mounted(tmp_path: Path) -> None:
    statistics = f"cache 5\ntotal_inactive_file {10 * _MB}\n"
    folder = tmp_path / "cgroup" / "memory" / "job"
    group(folder, "memory.limit_in_bytes", str(200 * _MB), "memory.usage_in_bytes", 150 * _MB, statistics)
    assert left(tmp_path, "4:memory:/job\n0::/") == 60 * _MB


def test_where_nothing_bounds_it_nothing_is_said(tmp_path: Path) -> None:
    version_2(tmp_path / "cgroup" / "job", "max", 5, 0)
    assert left(tmp_path, "0::/job") is None
    assert left(tmp_path, "no word of a group") is None
    assert memory_left(tmp_path / "missing", tmp_path) is None
