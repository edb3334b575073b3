"""How much memory the control groups that this process is in leave to it (man 7 cgroups). Linux only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

#: By version: the folder below the root, the limit, what is taken, and what of that is a cache of files.
_VERSION_2 = ("", "memory.max", "memory.current", "inactive_file")
_VERSION_1 = ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def memory_left(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes; ``None`` where there is no limit, or where it cannot be read. A group's limit is also its children's."""
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return None
    bytes_left: list[int] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "":
            bytes_left += _left(root, group, *_VERSION_2)
        elif "memory" in controllers.split(","):
            bytes_left += _left(root, group, *_VERSION_1)
    return min(bytes_left, default=None)


def _left(root: Path, group: str, below: str, limit: str, taken: str, cache: str) -> Iterator[int]:
    top = root / below
    folder = top / group.lstrip("/")
    for level in (folder, *folder.parents):
        if not level.is_relative_to(top):
            return
        try:
            most = int((level / limit).read_text())  # ValueError: "max"
            statistics = dict(line.split() for line in (level / "memory.stat").read_text().splitlines())
            yield most - int((level / taken).read_text()) + int(statistics.get(cache, 0))
        except (OSError, ValueError):
            continue
