"""Fixtures of tests on a server that leaves names out of its table maps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lab.addresses import MySqlAddress
from tests.support.minimal_shop import Shop


@pytest.fixture
def shop(minimal_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path) -> Iterator[Shop]:
    """Yield a job on `minimal_mysql`, with a table `t`."""
    with closing(Shop(minimal_mysql, kafka_address, topic_prefix, tmp_path)) as opened:
        opened.run("CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, a VARCHAR(20), b VARCHAR(20), e ENUM('x', 'y'))")
        yield opened
