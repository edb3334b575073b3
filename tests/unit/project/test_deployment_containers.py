"""Image, Compose, systemd unit and commands agree with the code and with each other. No engine runs them here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from configparser import ConfigParser
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from incsnap.config.load import load
from incsnap.config.settings import Settings
from incsnap.mysql.server_rules import replica_findings, variable_findings
from tests.support.deployment_files import (
    DOCKER,
    DOCKERFILE,
    PAGE,
    ROOT,
    STOP_TIME,
    bytes_of,
    compose,
    is_below,
    tried_limit,
)


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def variables(service: dict[str, Any]) -> dict[str, str]:
    """The variables of the server that this command starts, as SHOW VARIABLES has them."""
    options = [option.removeprefix("--").partition("=") for option in service["command"]]
    named = {name.replace("-", "_"): value for name, _, value in options}
    return {**named, "log_bin": "ON" if named.get("log_bin") else "OFF"}


def settings_in_compose(monkeypatch: pytest.MonkeyPatch, *names: str) -> Settings:
    for name in names:
        for key, value in compose(name)["services"]["incsnap"]["environment"].items():
            monkeypatch.setenv(key, value)
    return load(DOCKER / "incsnap.properties")


def grants(text: str) -> set[tuple[str, str]]:
    """Rights to incsnap@'%', and on what; lines that begin with GRANT."""
    statements = re.findall(r"^GRANT ([\w ,]+) ON (\S+) TO incsnap@'%';", text, re.MULTILINE)
    return {(right.strip(), place) for rights, place in statements for right in rights.split(",")}


# -- the image


def test_the_image_runs_as_a_user_of_its_own_that_has_a_name() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)

    assert int(user) > 0
    assert re.search(rf"useradd --uid {user} ", DOCKERFILE)


def test_signals_reach_the_job() -> None:
    """The first process of the container passes signals on. A shell would not."""
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)

    assert yaml.safe_load(entry) == ["tini", "--", "incsnap"]
    assert re.search(r"apt-get install .*\btini\b", DOCKERFILE)


def test_the_image_is_made_of_what_there_is() -> None:
    copied = [name for line in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()]
    allowed = re.findall(r"^!(.*)$", (DOCKER / "Dockerfile.dockerignore").read_text(), re.MULTILINE)

    assert copied
    assert set(copied) == set(allowed)
    assert all((ROOT / name).exists() for name in copied)


# -- systemd and docker run, as the page has them


def test_the_service_stops_the_job_alone_and_waits_for_it() -> None:
    (text,) = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    unit = ConfigParser(interpolation=None)
    unit.read_string(text)

    assert unit["Service"]["KillMode"] == "mixed"
    assert float(unit["Service"]["TimeoutStopSec"]) >= STOP_TIME
    assert int(unit["Service"]["MemoryMax"].removesuffix("G")) << 30 > tried_limit()


def test_the_command_gives_the_job_time_and_memory() -> None:
    (command,) = re.findall(r"^docker run (.*?)^docker exec", PAGE, re.DOTALL | re.MULTILINE)
    (stop,), (memory,) = re.findall(r"--stop-timeout (\d+)", command), re.findall(r"--memory (\w+)", command)

    assert float(stop) >= STOP_TIME
    assert bytes_of(memory) > tried_limit()


# -- Compose


def mounts() -> Iterator[tuple[str, str, str]]:
    """File, service and what is mounted there."""
    for name in ("compose.yml", "compose.replica.yml"):
        for service, described in compose(name)["services"].items():
            for mount in described.get("volumes", ()):
                yield name, service, mount.split(":")[0]


@pytest.mark.parametrize(("name", "service", "source"), list(mounts()))
def test_mounted_files_exist(name: str, service: str, source: str) -> None:
    assert (DOCKER / source).is_file() if source.startswith("./") else source in compose(name)["volumes"]


@pytest.mark.parametrize("name", ["compose.yml", "compose.replica.yml"])
def test_a_service_waits_for_services_that_tell_their_health(name: str) -> None:
    known = {**compose()["services"], **compose(name)["services"]}
    awaited = {each for service in compose(name)["services"].values() for each in service.get("depends_on", ())}

    assert awaited
    assert all(known[each]["healthcheck"]["test"] for each in awaited)


def test_compose_gives_the_job_time_memory_and_a_question() -> None:
    service = compose()["services"]["incsnap"]

    assert seconds(service["stop_grace_period"]) >= STOP_TIME
    assert bytes_of(service["mem_limit"]) > tried_limit()
    assert service["restart"] == "unless-stopped"


def test_the_health_check_asks_the_port_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    service = compose()["services"]["incsnap"]
    settings = settings_in_compose(monkeypatch, "compose.yml")
    (asked,) = re.findall(r"'(http://[^']*)'", service["healthcheck"]["test"][-1])

    assert (urlsplit(asked).port, urlsplit(asked).path) == (settings.monitoring.port, "/health")
    assert service["ports"] == [f"127.0.0.1:{settings.monitoring.port}:{settings.monitoring.port}"]
    assert settings.monitoring.host == "0.0.0.0"


def test_the_job_finds_the_servers_of_compose(monkeypatch: pytest.MonkeyPatch) -> None:
    services = compose()["services"]
    settings = settings_in_compose(monkeypatch, "compose.yml")

    assert settings.mysql.hostname in services
    assert settings.kafka.bootstrap_servers.partition(":")[0] in services
    with_replica = settings_in_compose(monkeypatch, "compose.yml", "compose.replica.yml")
    assert with_replica.mysql.hostname in compose("compose.replica.yml")["services"]


def test_the_checkpoint_of_compose_is_on_a_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [mount.split(":")[1] for mount in compose()["services"]["incsnap"]["volumes"]]

    assert is_below(settings_in_compose(monkeypatch, "compose.yml").checkpoint_location, places)
    assert is_below(compose()["services"]["incsnap"]["command"][-1], places)


@pytest.mark.parametrize(("name", "service"), [("compose.yml", "mysql"), ("compose.replica.yml", "replica")])
def test_servers_are_started_as_the_job_wants_them(name: str, service: str) -> None:
    settings = variables(compose(name)["services"][service])

    assert settings.keys() >= {"log_bin", "gtid_mode", "enforce_gtid_consistency", "binlog_row_metadata"}
    assert variable_findings(settings) == []


def test_the_replica_is_one_that_can_be_read() -> None:
    settings = variables(compose("compose.replica.yml")["services"]["replica"])

    assert settings.keys() >= {"log_replica_updates", "replica_preserve_commit_order"}
    assert replica_findings({**settings, "replica_parallel_workers": "4"}) == []
    assert settings["server_id"] != variables(compose()["services"]["mysql"])["server_id"]


def test_the_user_has_the_documented_rights_and_may_signal() -> None:
    given = grants((DOCKER / "mysql" / "init.sql").read_text())
    documented = grants((ROOT / "docs" / "operation.md").read_text())

    assert documented
    assert given - documented == {("INSERT", "inventory.incsnap_signal")}
    assert documented - given == set()
    assert grants(PAGE) - given == {("XA_RECOVER_ADMIN", "*.*")}
    assert given - grants(PAGE) == set()
