"""Tests of the jobs of Spark that bring blocks of bytes to the driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from incsnap.errors import ConfigError
from incsnap.verify.allowance import Allowance
from incsnap.verify.part_jobs import PartJobs


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.mark.parametrize("tasks", [None, 2], ids=["a job for each task", "two tasks a job"])
def test_each_part_has_one_block_whatever_its_size(spark: SparkSession, tasks: int | None) -> None:
    sizes = [0, 1, (1 << 20) + 1, 3 << 20]
    jobs = PartJobs(spark.sparkContext, Allowance(tasks=tasks))

    blocks = dict(jobs.run(list(enumerate(sizes)), lambda size: size, 2, lambda number, size: bytes([number]) * size))

    assert blocks == {number: bytes([number]) * size for number, size in enumerate(sizes)}


def test_the_error_of_a_task_keeps_its_message_and_hint(spark: SparkSession) -> None:
    def read(_: int, __: int) -> bytes:
        raise ConfigError("/data cannot be written: No space left on device", "Use another disk.")

    with pytest.raises(ConfigError) as raised:
        list(PartJobs(spark.sparkContext, Allowance()).run([(0, 0)], lambda _: 1, 1, read))

    assert (raised.value.message, raised.value.hint) == (
        "/data cannot be written: No space left on device",
        "Use another disk.",
    )


@pytest.mark.parametrize(
    ("master", "is_here"), [("local", True), ("local[4,4]", True), ("local-cluster[1,1,1]", False)]
)
def test_only_tasks_of_local_mode_are_on_this_machine(
    spark: SparkSession, master: str, is_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "master", master)

    assert PartJobs(spark.sparkContext, Allowance()).on_this_machine is is_here
