"""Tests of the records that a connector's schema history gets at a hand-back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from incsnap.cli.main import commands
from incsnap.config.load import from_properties
from incsnap.errors import ConfigError
from incsnap.tables import TableId
from incsnap.takeover.schema_history import HistoryTopic, history_topic, records, statements
from lab.running_job import write_properties
from tests.support.properties import NEEDED, QUIET

_HISTORY = "schema.history.internal"
_TOPIC = {f"{_HISTORY}.kafka.topic": "shop.history"}
_ORDERS, _SIGNALS = TableId("shop", "orders"), TableId("ops", "signals")


def test_a_database_is_dropped_and_made_before_its_tables() -> None:
    made = list(statements({"shop": "utf8mb4"}, {_ORDERS: "CREATE TABLE `orders` (`id` int)"}))

    assert made == [
        ("shop", "DROP DATABASE IF EXISTS `shop`"),
        ("shop", "CREATE DATABASE `shop` CHARACTER SET utf8mb4"),
        ("shop", "CREATE TABLE `orders` (`id` int)"),
    ]


def test_a_database_that_is_gone_is_only_dropped() -> None:
    assert list(statements({"old`shop": None}, {})) == [("old`shop", "DROP DATABASE IF EXISTS `old``shop`")]


def test_a_table_of_another_database_is_dropped_alone() -> None:
    assert list(statements({}, {_SIGNALS: "CREATE TABLE `signals` (`id` int)"})) == [
        ("ops", "DROP TABLE IF EXISTS `ops`.`signals`"),
        ("ops", "CREATE TABLE `signals` (`id` int)"),
    ]


def test_a_record_has_the_place_of_the_offset_and_leaves_the_parsing_to_debezium() -> None:
    place = {"ts_sec": 7, "file": "binlog.000002", "pos": 157, "gtids": "u:1-9"}
    offset = {**place, "incremental_snapshot_primary_key": "ac"}

    (record,) = records("p", offset, [("shop", "CREATE TABLE `é` (`id` int)")], 7_001)

    assert json.loads(record) == {
        "source": {"server": "p"},
        "position": place,
        "ts_ms": 7_001,
        "databaseName": "shop",
        "ddl": "CREATE TABLE `é` (`id` int)",
        "tableChanges": [],
    }


def test_the_topic_has_the_jobs_login_where_the_jobs_brokers_have_it() -> None:
    given = {**NEEDED, **_TOPIC, "bootstrap.servers": "k1:9092,k2:9092", "producer.security.protocol": "SSL"}
    settings = from_properties(given).settings

    same = history_topic({**given, f"{_HISTORY}.kafka.bootstrap.servers": "k2:9092, k1:9092"}, settings)
    other = history_topic({**given, f"{_HISTORY}.kafka.bootstrap.servers": "other:9092"}, settings)

    assert same is not None
    assert other is not None
    assert (same.name, same.client.producer) == ("shop.history", {"security.protocol": "SSL"})
    assert (other.client.bootstrap_servers, other.client.producer) == ("other:9092", {})


def test_the_topic_has_a_login_of_its_own_and_settings_of_a_producer_that_jobs_refuse() -> None:
    given = {**NEEDED, **_TOPIC, f"{_HISTORY}.producer.security.protocol": "SSL", f"{_HISTORY}.producer.acks": "1"}

    topic = history_topic(
        {**given, f"{_HISTORY}.kafka.topic": "${env:TOPIC}"}, from_properties(given).settings, {"TOPIC": "h"}
    )

    assert topic is not None
    assert (topic.name, topic.client.producer) == ("h", {"security.protocol": "SSL"})


def test_the_login_may_be_behind_a_provider_that_has_a_name_of_its_own(tmp_path: Path) -> None:
    secrets, vault = tmp_path / "secrets.properties", "config.providers.vault.class"
    secrets.write_text("password=p\n")
    providers = {"config.providers": "vault", vault: "org.apache.kafka.common.config.provider.FileConfigProvider"}
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": f"${{vault:{secrets}:password}}"}
    given = {**QUIET, **_TOPIC, **{f"{_HISTORY}.producer.{name}": text for name, text in login.items()}}
    given |= {"name": "shop", "checkpoint.location": str(tmp_path / "checkpoint")}
    file, worker = tmp_path / "shop.properties", tmp_path / "worker.properties"
    topics: list[HistoryTopic | None] = []

    def recorded(*arguments: Any) -> HistoryTopic | None:
        topics.append(history_topic(*arguments))
        return topics[-1]

    command = ["hand-back", str(write_properties(file, given)), "--worker", str(write_properties(worker, providers))]
    with patch("incsnap.takeover.schema_history.history_topic", recorded):
        CliRunner().invoke(commands, [*command, "--to-file", str(tmp_path / "offsets")])

    (topic,) = topics
    assert topic is not None
    assert topic.client.producer["sasl.password"] == "p"


@pytest.mark.parametrize(
    "given", [{}, {**_TOPIC, _HISTORY: "io.debezium.storage.file.history.FileSchemaHistory"}], ids=["none", "file"]
)
def test_a_history_outside_of_kafka_is_left_to_the_user(given: dict[str, str]) -> None:
    assert history_topic(given, from_properties(NEEDED).settings) is None


def test_a_login_that_cannot_be_used_is_refused() -> None:
    given = {**_TOPIC, f"{_HISTORY}.producer.ssl.truststore.location": "/x.jks"}

    with pytest.raises(ConfigError, match=r"schema\.history\.internal\.producer\.ssl\.truststore\.location.*PEM"):
        history_topic(given, from_properties(NEEDED).settings)
