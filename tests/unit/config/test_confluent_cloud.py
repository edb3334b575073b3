"""A file of Confluent Cloud's managed connector becomes one of Debezium's connector that starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from incsnap.cli.main import commands
from incsnap.config.documents import read_document
from incsnap.config.load import read

SECOND = {
    "connector.class": "MySqlCdcSourceV2",
    "kafka.auth.mode": "KAFKA_API_KEY",
    "kafka.api.key": "KEY",
    "kafka.api.secret": "hunter2",
    "kafka.endpoint": "SASL_SSL://broker.confluent.cloud:9092",
    "database.hostname": "db",
    "database.user": "u",
    "database.password": "topsecret",
    "topic.prefix": "shop",
    "table.include.list": "shop.orders",
    "output.data.format": "JSON",
    "output.key.format": "STRING",
    "json.output.decimal.format": "NUMERIC",
    "cleanup.policy": "compact",
    "tasks.max": "1",
    "checkpoint.location": "/tmp/job",
}
FIRST = {
    **{name: value for name, value in SECOND.items() if name != "topic.prefix"},
    "connector.class": "MySqlCdcSource",
    "kafka.api.key": "****************",
    "kafka.auth.mode": "SERVICE_ACCOUNT",
    "database.server.name": "shop",
    "output.data.format": "AVRO",
    "output.key.format": "JSON_SR",
}


def _fixed(values: dict[str, str], folder: Path, code: int = 0) -> tuple[Result, Path]:
    old, new = folder / "old.json", folder / "new.json"
    old.write_text(json.dumps({"name": "mine", "config": values}, indent=2))
    result = CliRunner().invoke(commands, ["config", "--fix", str(old)])
    assert result.exit_code == code, result.output
    new.write_text(result.stdout)
    return result, new


def test_the_second_connector_starts_after_the_correction(tmp_path: Path) -> None:
    result, new = _fixed(SECOND, tmp_path)
    values = read_document(new)
    assert "cannot start" not in result.stderr
    assert values["bootstrap.servers"] == "broker.confluent.cloud:9092"
    assert 'username="KEY" password="hunter2"' in values["producer.sasl.jaas.config"]
    assert values["time.precision.mode"] == "connect"
    assert "transforms" not in values
    assert not [name for name in values if name.startswith(("kafka.", "output.", "json.output", "cleanup"))]
    settings = read(new).settings
    assert settings.formats.value.kind == "json"
    assert not settings.formats.value.schemas
    assert settings.formats.value.decimals == "numeric"
    assert settings.formats.key.kind == "text"
    assert settings.topic_creation.default.config == {"cleanup.policy": "compact"}


def test_the_first_connector_has_its_own_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KAFKA_API_KEY", "SCHEMA_REGISTRY_KEY_AND_SECRET"):
        monkeypatch.setenv(name, "a:b")
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", "http://registry:8081")
    result, new = _fixed(FIRST, tmp_path)
    values = read_document(new)
    assert "cannot start" not in result.stderr
    assert values["topic.prefix"] == "shop"
    assert values["transforms.after.type"] == "io.debezium.transforms.ExtractNewRecordState"
    assert values["transforms.after.delete.tombstone.handling.mode"] == "delete-to-tombstone"
    assert "=delete-to-tombstone: added. A deletion becomes a tombstone." in result.stderr
    assert (values["schema.name.adjustment.mode"], values["skipped.operations"]) == ("avro", "none")
    assert 'username="${env:KAFKA_API_KEY}"' in values["producer.sasl.jaas.config"]
    assert values["value.converter.basic.auth.user.info"] == "${env:SCHEMA_REGISTRY_KEY_AND_SECRET}"
    formats = read(new).settings.formats
    assert (formats.key.kind, formats.value.kind) == ("json-schema", "avro")


def test_a_transform_of_the_users_own_follows_the_one_behind_after_state_only(tmp_path: Path) -> None:
    given = {**SECOND, "after.state.only": "true", "transforms": "route", "transforms.route.type": "X"}
    _, new = _fixed(given, tmp_path, code=2)
    assert read_document(new)["transforms"] == "after,route"


def test_what_the_environment_must_hold_is_said(tmp_path: Path) -> None:
    result, _ = _fixed(FIRST, tmp_path)
    assert "the environment has no variable SCHEMA_REGISTRY_URL" in result.stderr


def test_no_password_is_printed(tmp_path: Path) -> None:
    result, new = _fixed(FIRST, tmp_path)
    shown = CliRunner().invoke(commands, ["config", str(new)])
    for secret in ("hunter2", "topsecret"):
        assert secret not in result.stderr + shown.output


def test_a_start_with_the_file_as_it_is_says_what_to_type(tmp_path: Path) -> None:
    file = tmp_path / "cloud.json"
    file.write_text(json.dumps(SECOND))
    shown = CliRunner().invoke(commands, ["config", str(file)])
    assert shown.exit_code == 2
    assert "a managed connector of Confluent Cloud. `incsnap config --fix FILE`" in shown.output
