"""Fixtures of the end-to-end tests: a scene on real servers, its job's log shown when a test fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.running_job import end_of


@pytest.fixture
def play(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> Iterator[CapturedDatabase]:
    """An empty scene; pytest shows what is printed only when the test fails."""
    with captured_database(mysql_address, kafka_address, database, topic_prefix, tmp_path) as made:
        yield made
        sys.stdout.write(f"The job's log ends:\n{end_of(made.log, 60)}\n")
