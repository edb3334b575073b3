"""Spark's properties: the job's own, and the user's, which win."""

from __future__ import annotations

import os

import pytest

from incsnap.config.load import from_properties
from incsnap.spark.session import prepare, properties, workers_python
from incsnap.spark.worker_python import interpreter

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
    chosen = of(**{"driver.extraJavaOptions": "-Xmn1g"})
    assert chosen["spark.driver.extraJavaOptions"] == "-Xmn1g"
    assert "-XX:+UseSerialGC" in chosen["spark.driver.defaultJavaOptions"]
    assert "-Dlog4j2.configurationFile=" in chosen["spark.driver.defaultJavaOptions"]


@pytest.mark.parametrize("collector", ["-XX:+UseG1GC", "-Xmn1g -XX:+UseZGC"])
def test_a_collector_of_the_users_takes_the_place_of_ours(collector: str) -> None:
    assert "GC" not in of(**{"driver.extraJavaOptions": collector})["spark.driver.defaultJavaOptions"]


def test_a_property_of_the_users_wins() -> None:
    assert of(master="local[8]")["spark.master"] == "local[8]"
    assert of(**{"driver.defaultJavaOptions": ""})["spark.driver.defaultJavaOptions"] == ""


def test_options_of_spark_submit_override_ours_and_yield_to_the_files() -> None:
    submitted_properties = {"spark.app.name": "told", "spark.executor.memory": "3g", "spark.ui.enabled": "true"}
    settings = from_properties({**JOB, "spark.executor.memory": "2g"}).settings
    chosen = properties(settings, submitted_properties)

    assert (chosen["spark.app.name"], chosen["spark.executor.memory"]) == ("told", "2g")
    assert (chosen["spark.ui.enabled"], chosen["spark.locality.wait"]) == ("true", "0")


def test_the_master_of_spark_submit_is_not_changed_by_the_file(caplog: pytest.LogCaptureFixture) -> None:
    settings = from_properties({**JOB, "spark.master": "local[2]"}).settings

    assert properties(settings, {"spark.master": "spark://one:7077"})["spark.master"] == "spark://one:7077"
    assert "spark.master=local[2]" in caplog.text


def test_on_yarn_workers_have_no_sockets_in_the_long_paths_of_containers() -> None:
    sockets = "spark.python.unix.domain.socket.enabled"

    assert (of()[sockets], of(master="yarn")[sockets]) == ("true", "false")
    assert properties(from_properties(JOB).settings, {"spark.master": "yarn"})[sockets] == "false"
    assert of(master="yarn", **{"python.unix.domain.socket.enabled": "true"})[sockets] == "true"


def test_only_on_a_cluster_executors_have_options_of_their_own() -> None:
    name = "spark.executor.defaultJavaOptions"
    assert "-XX:+UseSerialGC" in of(master="spark://one:7077")[name]
    assert "-Dlog4j2.level=warn" in of(master="spark://one:7077")[name]
    assert "GC" not in of(**{"master": "yarn", "executor.extraJavaOptions": "-XX:+UseG1GC"})[name]
    assert name not in of()


@pytest.mark.parametrize(
    ("spark", "named", "python"),
    [
        ({}, "", interpreter()),
        ({"archives": "/a/incsnap.tar.gz#env"}, "", "incsnap-python"),
        ({"pyspark.python": "/opt/python", "archives": "/a/b.tar.gz#env"}, "", "/opt/python"),
        ({}, "/opt/python", "/opt/python"),
    ],
)
def test_workers_of_a_cluster_run_what_the_user_names_or_sends(
    monkeypatch: pytest.MonkeyPatch, spark: dict[str, str], named: str, python: str
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", named)

    assert workers_python(of(**{"master": "spark://one:7077", **spark})) == python
    assert workers_python(of(**spark)) == interpreter()


@pytest.mark.parametrize(("archive", "folder"), [("/a/incsnap.tar.gz#env", "env"), ("/a/incsnap.zip", "incsnap.zip")])
def test_executors_look_for_programs_in_an_archive_first(archive: str, folder: str) -> None:
    chosen = of(master="spark://one:7077", archives=archive)

    assert chosen["spark.executorEnv.PATH"].startswith(f"./{folder}/bin:")


def test_the_planner_finds_the_drivers_own_program_by_the_workers_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "MALLOC_ARENA_MAX"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PATH", "/usr/bin")
    spark = of(master="spark://one:7077", archives="/a/incsnap.tar.gz#env")
    prepare(spark, workers_python(spark))
    prepare(spark, workers_python(spark))

    assert os.environ["PATH"] == f"{os.path.dirname(interpreter())}:/usr/bin"


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
