"""Fixtures of the end-to-end tests: a scene on real servers, its job's log shown when a test fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from incsnap.checkpoint.object_store import reach
from incsnap.config.object_store import store_access
from incsnap.errors import ConfigError
from incsnap.spark.s3a_jars import s3a_jars
from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.object_store import ObjectStore
from lab.running_job import end_of
from lab.spark_cluster import SparkCluster, spark_cluster


@pytest.fixture
def play(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> Iterator[CapturedDatabase]:
    """An empty scene; pytest shows what is printed only when the test fails."""
    with captured_database(mysql_address, kafka_address, database, topic_prefix, tmp_path) as made:
        yield made
        sys.stdout.write(f"The job's log ends:\n{end_of(made.log, 60)}\n")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    """Two machines for executors."""
    with spark_cluster() as made:
        yield made


@pytest.fixture
def in_bucket(object_store: ObjectStore, topic_prefix: str) -> dict[str, str]:
    """The settings of a job's checkpoint in a bucket, which this process can read too."""
    try:
        s3a_jars()
    except ConfigError as error:
        pytest.skip(error.message)
    settings = object_store.properties(topic_prefix)
    location = settings["checkpoint.location"]
    reach(location, store_access(location, settings, {}))
    return settings
