"""Readers of the deployment files, and of the values that pages and code state about them."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from incsnap.spark.job import STOP_SECONDS

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
PAGE = (ROOT / "docs" / "deploy.md").read_text()
#: Least seconds that a job must get for its end: a clean stop, and Spark's own end after it.
STOP_TIME = STOP_SECONDS + 15.0
#: Bytes of the units that the files use.
_UNITS = {"g": 1 << 30, "Gi": 1 << 30, "m": 1 << 20, "Mi": 1 << 20}


def compose(name: str = "compose.yml") -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((DOCKER / name).read_text())
    return document


def bytes_of(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()  # type: ignore[union-attr]
    return int(number) * _UNITS[unit]


def tried_limit() -> int:
    """Return the memory limit in bytes under which the loads of docs/memory.md were delivered."""
    (megabytes,) = re.findall(r"limit ([\d,]+) MB:", (ROOT / "docs" / "memory.md").read_text())
    return int(megabytes.replace(",", "")) * 10**6


def is_below(path: str, folders: list[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)
