"""Fixtures of the end-to-end tests: a database on real servers with its job, and a Spark cluster.

A failing test shows the job's log.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from incsnap.checkpoint.object_store import set_access
from incsnap.config.object_store import store_access
from incsnap.errors import ConfigError
from incsnap.spark.store.s3a_jars import s3a_jars
from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.object_store import ObjectStore
from lab.running_job import end_of
from lab.spark_cluster import SparkCluster, spark_cluster


@pytest.fixture
def play(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> Iterator[CapturedDatabase]:
    """An empty captured database. Its job's log is printed at the end, which pytest shows if the test fails."""
    with captured_database(mysql_address, kafka_address, database, topic_prefix, tmp_path) as made:
        yield made
        sys.stdout.write(f"The job's log ends:\n{end_of(made.log, 60)}\n")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    """A Spark cluster of two machines for executors."""
    with spark_cluster() as made:
        yield made


@pytest.fixture
def in_bucket(object_store: ObjectStore, topic_prefix: str) -> dict[str, str]:
    """Settings for a checkpoint in a bucket, which this process can read too."""
    try:
        s3a_jars()
    except ConfigError as error:
        pytest.skip(error.message)
    settings = object_store.properties(topic_prefix)
    location = settings["checkpoint.location"]
    set_access(location, store_access(location, settings, {}))
    return settings
