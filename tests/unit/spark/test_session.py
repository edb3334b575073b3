"""Spark's properties: ours, and over them the user's."""

from __future__ import annotations

import os

import pytest

from incsnap.config.load import from_properties
from incsnap.spark.session import prepare, properties

JOB = {
    "database.hostname": "127.0.0.1",
    "database.user": "cdc",
    "topic.prefix": "shop",
    "bootstrap.servers": "127.0.0.1:1",
    "checkpoint.location": "/tmp/checkpoint",
    "snapshot.mode": "no_data",
}


def of(**spark: str) -> dict[str, str]:
    return properties(from_properties({**JOB, **{f"spark.{name}": value for name, value in spark.items()}}).settings)


def test_options_of_the_users_come_behind_ours() -> None:
    found = of(**{"driver.extraJavaOptions": "-Xmn1g"})
    assert found["spark.driver.extraJavaOptions"] == "-Xmn1g"
    assert "-XX:+UseSerialGC" in found["spark.driver.defaultJavaOptions"]
    assert "-Dlog4j2.configurationFile=" in found["spark.driver.defaultJavaOptions"]


@pytest.mark.parametrize("collector", ["-XX:+UseG1GC", "-Xmn1g -XX:+UseZGC"])
def test_a_collector_of_the_users_takes_the_place_of_ours(collector: str) -> None:
    assert "GC" not in of(**{"driver.extraJavaOptions": collector})["spark.driver.defaultJavaOptions"]


def test_a_property_of_the_users_wins() -> None:
    assert of(master="local[8]")["spark.master"] == "local[8]"
    assert of(**{"driver.defaultJavaOptions": ""})["spark.driver.defaultJavaOptions"] == ""


@pytest.mark.parametrize(("users", "kept"), [(None, "2"), ("1", "1")])
def test_a_jvms_threads_share_two_arenas_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, users: str | None, kept: str
) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("MALLOC_ARENA_MAX", users or "")
    if users is None:
        monkeypatch.delenv("MALLOC_ARENA_MAX")
    prepare({"spark.master": "local[4,4]"}, "python")
    assert os.environ["MALLOC_ARENA_MAX"] == kept
