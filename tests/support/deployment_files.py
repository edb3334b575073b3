"""The files that a deployment is made of, as tests read them, and what pages and code say of the values in them."""

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
#: Seconds that a job is given at least: a clean stop, and Spark's own end behind it.
STOP_TIME = STOP_SECONDS + 15.0
#: Bytes: those units that the files use.
_UNITS = {"g": 1 << 30, "Gi": 1 << 30, "m": 1 << 20, "Mi": 1 << 20}


def compose(name: str = "compose.yml") -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((DOCKER / name).read_text())
    return document


def bytes_of(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()  # type: ignore[union-attr]
    return int(number) * _UNITS[unit]


def tried_limit() -> int:
    """Bytes of the limit under which the whole loads of docs/memory.md were delivered."""
    (megabytes,) = re.findall(r"limit ([\d,]+) MB:", (ROOT / "docs" / "memory.md").read_text())
    return int(megabytes.replace(",", "")) * 10**6


def is_below(path: str, folders: list[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)
