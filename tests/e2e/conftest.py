"""Fixtures of the end-to-end tests: a scene on real servers, its job's log shown when a test fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from incsnap.sandbox.addresses import MySqlAddress
from incsnap.sandbox.scene import Scene, scene


@pytest.fixture
def play(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> Iterator[Scene]:
    """An empty scene; pytest shows what is printed only when the test fails."""
    with scene(mysql_address, kafka_address, database, topic_prefix, tmp_path) as made:
        yield made
        if made.log.exists():
            lines = made.log.read_text(errors="replace").splitlines()[-60:]
            sys.stdout.write("\n".join(["The job's log ends:", *lines, ""]))
