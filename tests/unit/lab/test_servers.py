"""Tests of the errors on a machine that cannot fetch servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.errors import ServerUnreachable
from lab import containers
from lab.servers import servers


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the machine bare: no address of a server, no Docker engine, an empty cache, no program in the path."""
    for name in ("INCSNAP_MYSQL", "INCSNAP_KAFKA", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("INCSNAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(containers, "engine_answers", lambda: False)


def test_without_apt_the_hint_names_the_other_ways_to_mysql() -> None:
    with pytest.raises(ServerUnreachable, match="there is no apt-get here") as caught, servers(kafka=False):
        pytest.fail("there cannot be a server")

    assert "INCSNAP_MYSQL" in caught.value.hint
    assert "Docker" in caught.value.hint


def test_without_java_kafka_is_not_fetched_and_java_is_asked_for() -> None:
    with pytest.raises(ServerUnreachable, match="Kafka needs Java"), servers(mysql=False):
        pytest.fail("there cannot be a server")


def test_given_addresses_need_nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INCSNAP_MYSQL", "db:3306")
    monkeypatch.setenv("INCSNAP_KAFKA", "broker:9092")

    with servers() as given:
        assert (str(given.mysql), given.kafka) == ("db:3306", "broker:9092")


def test_the_image_of_mysql_can_be_named() -> None:
    assert containers.mysql_image({}) == containers.mysql_image({"INCSNAP_MYSQL_IMAGE": " "}) == "mysql:8.4"
    assert containers.mysql_image({"INCSNAP_MYSQL_IMAGE": "mysql:8.0"}) == "mysql:8.0"
