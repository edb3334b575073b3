"""Spark's logs in a bucket: what a query costs there, and what becomes of the second of two writers."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.object_store import set_access
from incsnap.config.object_store import store_access
from incsnap.errors import ConfigError
from incsnap.spark.store import object_logs, s3a
from incsnap.spark.store.s3a_jars import s3a_jars
from lab.object_store import ObjectStore
from tests.support.spark_session import end_jvm
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def spark(object_store: ObjectStore) -> Iterator[SparkSession]:
    try:
        jars = s3a_jars()
    except ConfigError as error:
        pytest.skip(error.message)
    location = object_store.properties("")
    given = {name: value for name, value in location.items() if name.startswith("spark.")}
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for name, value in {**s3a.OPTIONS, **given, "spark.driver.extraClassPath": f"{jars}/*"}.items():
        builder = builder.config(name, value)
    # A JVM's class path is that of its start.
    end_jvm()
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    object_logs.use(session)
    yield session
    session.stop()
    end_jvm()


@pytest.fixture
def location(object_store: ObjectStore) -> str:
    uri = f"s3a://{object_store.bucket}/{secrets.token_hex(5)}"
    set_access(uri, store_access(uri, object_store.properties(""), {}))
    return uri


def test_a_batch_is_two_writes_and_nothing_is_renamed(
    spark: SparkSession, location: str, object_store: ObjectStore
) -> None:
    def run(batches: int) -> Counter[str]:
        """The requests of one life of a query, which does so many batches."""
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        query = rows.writeStream.format("noop").option("checkpointLocation", location).start()
        object_store.request_counts()
        wait_until(lambda: not query.isActive or (query.lastProgress or {"batchId": -1})["batchId"] >= batches)
        assert query.isActive, query.exception()
        query.stop()
        return object_store.request_counts()

    asked = run(6)

    files = Files(location)
    offsets = len([name for name in files.names("offsets") if name.isdecimal()])
    done = max(int(name) for name in files.names("offsets") if name.isdecimal()) + 1
    assert not asked["COPY"]
    assert offsets <= done
    # Beside two for each batch, those of the folders and of the first batch.
    assert asked["PUT"] <= 2 * done + 10
    run(done + 1)  # what was written is read again


def test_the_second_writer_of_a_batch_gets_an_error(spark: SparkSession, location: str) -> None:
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{location}/offsets/7")
    configuration: Any = spark._jsparkSession.sessionState().newHadoopConf()
    package = jvm.org.apache.spark.sql.execution.streaming.checkpointing

    def written(number: int, *, cancel: bool = False) -> None:
        stream = package.IncsnapObjectFiles(path.getParent(), configuration).createAtomic(path, False)
        stream.writeInt(number)
        if cancel:
            stream.cancel()
        stream.close()

    written(1, cancel=True)
    assert not Files(location).exists("offsets/7")
    written(2)
    with pytest.raises(Py4JJavaError, match=r"FileAlreadyExistsException: .* was written by another job"):
        written(3)
    content = Files(location).read("offsets/7")
    assert content is not None
    assert content.to_pybytes() == b"\0\0\0\2"
