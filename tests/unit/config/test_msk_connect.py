"""Documents of MSK Connect and CloudFormation: their login to Kafka stands beside the connector's settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from incsnap.config.documents import read_document
from incsnap.config.load import Loaded, correct, read
from incsnap.kafka.oauth_login import CALLBACK, with_login
from tests.support.job_settings import LEAST

_BROKERS = "b-1.shop.abc123.c2.kafka.eu-west-1.amazonaws.com:9098"
_CONFIG = {name: value for name, value in LEAST.items() if name != "bootstrap.servers"}
_IAM = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "incsnap.amazon": "eu-west-1|||"}


def _document(authentication: str, encryption: str, **config: str) -> dict[str, Any]:
    return {
        "connectorName": "inventory",
        "connectorConfiguration": {**_CONFIG, **config},
        "kafkaCluster": {"apacheKafkaCluster": {"bootstrapServers": _BROKERS, "vpc": {"subnets": ["subnet-1"]}}},
        "kafkaClusterClientAuthentication": {"authenticationType": authentication},
        "kafkaClusterEncryptionInTransit": {"encryptionType": encryption},
    }


def _capitals(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with names as in CloudFormation, where the connector's own settings keep their names."""
    return {
        name[0].upper() + name[1:]: _capitals(value)
        if isinstance(value, dict) and name != "connectorConfiguration"
        else value
        for name, value in document.items()
    }


def _read(path: Path, document: dict[str, Any]) -> Loaded:
    path.write_text(json.dumps(document))
    return read(path)


@pytest.mark.parametrize("of_cloudformation", [False, True])
@pytest.mark.parametrize(
    ("authentication", "encryption", "login"),
    [
        ("IAM", "TLS", _IAM),
        ("NONE", "TLS", {"security.protocol": "SSL"}),
        ("NONE", "PLAINTEXT", {}),
    ],
)
def test_the_login_of_the_document_is_that_of_both_kafka_clients(
    authentication: str, encryption: str, login: dict[str, str], of_cloudformation: bool, tmp_path: Path
) -> None:
    document = _document(authentication, encryption)
    settings = _read(tmp_path / "job", _capitals(document) if of_cloudformation else document).settings

    assert settings.kafka.bootstrap_servers == _BROKERS
    assert settings.kafka.producer == settings.signals.consumer == login
    assert read_document(tmp_path / "job")["name"] == "inventory"


def test_the_login_of_iam_is_one_that_makes_tokens(tmp_path: Path) -> None:
    producer = _read(tmp_path / "job", _document("IAM", "TLS")).settings.kafka.producer
    assert CALLBACK in with_login(producer)


def test_a_login_in_the_connectors_own_settings_wins(tmp_path: Path) -> None:
    own = {"producer.override.security.protocol": "SSL", "signal.consumer.security.protocol": "PLAINTEXT"}
    settings = _read(tmp_path / "job", _document("IAM", "TLS", **own)).settings
    assert settings.kafka.producer == {"security.protocol": "SSL"}
    assert settings.signals.consumer == {"security.protocol": "PLAINTEXT"}


def test_a_correction_leaves_the_login_beside_the_settings(tmp_path: Path) -> None:
    text = json.dumps(_document("IAM", "TLS", **{"snapshot.mode": "schema_only"}), indent=2)
    (tmp_path / "job").write_text(text)
    corrected = correct(tmp_path / "job")
    assert corrected.problem == ""
    assert corrected.text.rstrip() == text.replace("schema_only", "no_data")


@pytest.mark.parametrize(
    "document",
    [
        {"kafkaClusterClientAuthentication": None, "kafkaCluster": None},
        {"kafkaClusterClientAuthentication": {"authenticationType": None}, "kafkaCluster": {"apacheKafkaCluster": 1}},
        {"kafkaClusterEncryptionInTransit": "TLS"},
    ],
)
def test_an_incomplete_document_has_no_login(document: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "job").write_text(json.dumps({"connectorConfiguration": {"a": "b"}, **document}))
    assert read_document(tmp_path / "job") == {"a": "b"}
