"""Fixtures: a job on a server that leaves names out of its table maps, jobs with a file of signals, and a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from tests.support.minimal_shop import Shop
from tests.support.planned_job import MakeJob, planned_jobs, settings_of
from tests.support.waiting import PATIENCE_SECONDS


@pytest.fixture
def shop(
    minimal_mysql: MySqlAddress,
    kafka_address: str,
    topic_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Shop]:
    """Yield a job on `minimal_mysql`, with a table `t`.

    The job waits for definitions of tables that are not captured as long as a test waits. After a second it would leave
    the rest of them out.
    """
    monkeypatch.setattr("incsnap.mysql.row_definitions._OTHERS_SECONDS", PATIENCE_SECONDS)
    with closing(Shop(minimal_mysql, kafka_address, topic_prefix, tmp_path)) as opened:
        opened.run("CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, a VARCHAR(20), b VARCHAR(20), e ENUM('x', 'y'))")
        yield opened


@pytest.fixture
def make_job(
    mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str, tmp_path: Path
) -> Iterator[MakeJob]:
    """Yield a function that creates jobs from options. They take signals from a file."""
    files = {"signal__enabled__channels": "file", "signal__file": str(tmp_path / "signals")}
    settings = partial(settings_of, mysql_address, kafka_address, topic_prefix, database, **files)
    with planned_jobs(settings, tmp_path) as make:
        yield make


@pytest.fixture
def play(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> Iterator[CapturedDatabase]:
    """Yield an empty captured database."""
    with captured_database(mysql_address, kafka_address, database, topic_prefix, tmp_path) as made:
        yield made
