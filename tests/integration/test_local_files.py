"""Spark's small files on a local disk, in a JVM of its own kind."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from incsnap.spark.store import local_files
from tests.support.spark_session import end_jvm


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    # A JVM has the umask and the settings of its start.
    end_jvm()
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.hadoop.fs.file.impl", local_files.RAW)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    end_jvm()


def file_system(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm
    hadoop: Any = spark._jsparkSession.sessionState().newHadoopConf()
    return jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI.create("file:///"), hadoop)


def test_a_file_of_sparks_is_written_without_a_process(spark: SparkSession, tmp_path: Path) -> None:
    before = file_system(spark)
    assert before.getClass().getName() == local_files.RAW
    for _ in range(2):  # a session after this one finds the class in its JVM
        local_files.use(spark)
    files = file_system(spark)
    assert files.getClass().getSuperclass().getName() == local_files.RAW
    jvm: Any = spark.sparkContext._jvm
    path = tmp_path / "offsets"
    umask = os.umask(0o077)
    os.umask(umask)
    stream = files.create(jvm.org.apache.hadoop.fs.Path(f"file://{path}"), True)
    stream.writeInt(7)
    stream.close()
    assert path.read_bytes() == b"\0\0\0\7"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    # Hadoop's own asks chmod for it, and this would stay as it was.
    permission = jvm.org.apache.hadoop.fs.permission.FsPermission("600")
    files.setPermission(jvm.org.apache.hadoop.fs.Path(f"file://{path}"), permission)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_a_jvm_that_does_not_take_the_class_writes_as_before(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file_system(spark).getClass().getName()
    monkeypatch.setattr(local_files, "_NAME", "IncsnapNotJava")
    monkeypatch.setattr(local_files, "_JAVA", "this is no class")
    local_files.use(spark)
    assert file_system(spark).getClass().getName() == before
