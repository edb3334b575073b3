"""Tests of the environment variables with the servers' addresses."""

from __future__ import annotations

import pytest

from incsnap.errors import ConfigError
from lab.addresses import MySqlAddress, kafka_of, mysql_of


def test_an_empty_environment_names_no_server() -> None:
    assert mysql_of({"INCSNAP_MYSQL": " "}) is None
    assert kafka_of({}) is None


def test_the_environment_names_host_port_user_and_password() -> None:
    environment = {"INCSNAP_MYSQL": "db:3307", "INCSNAP_MYSQL_USER": "cdc", "INCSNAP_MYSQL_PASSWORD": "geheim"}

    assert mysql_of(environment) == MySqlAddress("db", 3307, "cdc", "geheim")


def test_an_ipv6_address_stands_in_brackets() -> None:
    assert mysql_of({"INCSNAP_MYSQL": "[::1]:3306"}) == MySqlAddress("::1", 3306)


def test_several_brokers_are_passed_on_as_they_are() -> None:
    assert kafka_of({"INCSNAP_KAFKA": "a:9092,b:9092"}) == "a:9092,b:9092"


@pytest.mark.parametrize("text", ["db", "db:", ":3306", "db:port", "db:0", "db:70000"])
def test_an_address_without_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="INCSNAP_MYSQL="):
        mysql_of({"INCSNAP_MYSQL": text})


def test_a_password_is_not_shown() -> None:
    assert "geheim" not in repr(MySqlAddress("db", 3306, "cdc", "geheim"))
