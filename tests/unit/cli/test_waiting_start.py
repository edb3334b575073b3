"""A start whose servers do not answer: for which findings it waits, and when it ends at once."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from incsnap.cli import run
from incsnap.cli.check import all_findings
from incsnap.cli.run import _await_servers, _require
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.errors import PreflightFailed, ServerAway
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.preflight import NoAnswer, _transactions, _unreachable
from incsnap.kafka.refusals import ClientError
from incsnap.monitoring.outages import Outages
from incsnap.mysql.preflight import Finding
from tests.support.properties import QUIET

AWAY = Finding("kafka", "Kafka does not answer at k:9092: refused", "start it", waits=True)
WRONG = Finding("server", "MySQL at db:3306 refuses the user 'cdc'", "Correct database.password")


def test_a_start_waits_for_a_server_that_does_not_answer() -> None:
    assert _require([AWAY, Finding("x", "y", "z", "warning")], set()) == [AWAY]


def test_a_start_ends_at_once_if_something_must_be_repaired() -> None:
    with pytest.raises(PreflightFailed):
        _require([WRONG, AWAY], set())


@pytest.mark.parametrize(
    ("code", "waits"), [(KafkaError._AUTHENTICATION, False), (KafkaError._SSL, False), (KafkaError._TRANSPORT, True)]
)
def test_a_client_that_kafka_does_not_let_in_is_not_waited_for(code: int, *, waits: bool) -> None:
    client = ClientSettings("127.0.0.1:1", {})
    admin = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    finding = _unreachable(client, KafkaException(KafkaError(KafkaError._TRANSPORT)), admin, [KafkaError(code)])
    assert isinstance(finding, NoAnswer) == waits


def test_a_start_waits_for_a_schema_registry_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A port that was free a moment ago refuses the connection.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        registry = f"http://127.0.0.1:{free.getsockname()[1]}"
    converter = "value.converter"
    avro = {converter: "io.confluent.connect.avro.AvroConverter", f"{converter}.schema.registry.url": registry}
    monkeypatch.setattr("incsnap.cli.check.preflight.findings", lambda *rest: [])
    monkeypatch.setattr("incsnap.cli.check.cluster_check", lambda *rest: [NoAnswer("Kafka does not answer", "x")])
    monkeypatch.setattr("incsnap.cli.check._topics", lambda *rest: [])

    properties = {**QUIET, **avro, "checkpoint.location": str(tmp_path)}
    waited_for = _require(all_findings(from_properties(properties, {}).settings), set())

    assert [each.name for each in waited_for] == ["kafka", "schema registry"]


@pytest.mark.parametrize(
    ("code", "waits"), [(KafkaError._TIMED_OUT, True), (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, False)]
)
def test_a_transaction_that_too_few_brokers_open_is_waited_for(
    code: int, *, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(producer: object, seconds: float) -> None:
        raise ClientError(code, "no")

    monkeypatch.setattr("incsnap.kafka.producer.TransactionalProducer.init_transactions", fails)

    (finding,) = _transactions(ClientSettings("127.0.0.1:1", {}), "incsnap-shop-preflight", 1.0)

    assert isinstance(finding, NoAnswer) == waits


@pytest.mark.parametrize("most", [0, 3])
def test_a_start_waits_no_longer_than_the_most_retries(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    properties = {
        "database.hostname": "db",
        "database.user": "cdc",
        "topic.prefix": "shop",
        "bootstrap.servers": "k:9092",
        "errors.max.retries": str(most),
    }
    checks: list[Settings] = []

    def findings(settings: Settings) -> list[Finding]:
        checks.append(settings)
        return [AWAY]

    monkeypatch.setattr("incsnap.cli.check.all_findings", findings)
    monkeypatch.setattr(run, "_PAUSE_SECONDS", 0.0)
    with (
        closing(Outages({})) as outages,
        pytest.raises(ServerAway, match=f"refused. errors.max.retries={most} is used"),
    ):
        _await_servers(from_properties(properties, {}).settings, [AWAY], set(), outages, Event())
    assert len(checks) == most


def test_a_start_that_waits_shows_each_warning_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warnings = [Finding("tables", "no table", "Create one", "warning"), Finding("x", "old", "Renew it", "warning")]
    checks = iter([[AWAY, *warnings]] * 4 + [[*warnings, Finding("y", "late", "Wait", "warning")]])
    monkeypatch.setattr("incsnap.cli.check.all_findings", lambda _: next(checks))
    monkeypatch.setattr(run, "_PAUSE_SECONDS", 0.0)
    shown: set[Finding] = set()
    settings = from_properties(QUIET, {}).settings
    with closing(Outages({})) as outages:
        _await_servers(settings, _require([AWAY, *warnings], shown), shown, outages, Event())
    printed = capsys.readouterr().err

    assert [printed.count(text) for text in ("no table", "old", "late")] == [1, 1, 1]
