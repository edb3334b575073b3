"""A start whose servers do not answer: for which findings it waits, and when it ends at once."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from incsnap.cli.run import _require
from incsnap.errors import PreflightFailed
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.preflight import NoAnswer, _unreachable
from incsnap.mysql.preflight import Finding

AWAY = Finding("kafka", "Kafka does not answer at k:9092: refused", "start it", waits=True)
WRONG = Finding("server", "MySQL at db:3306 refuses the user 'cdc'", "Correct database.password")


def test_a_start_waits_for_a_server_that_does_not_answer() -> None:
    assert _require([AWAY, Finding("x", "y", "z", "warning")]) == [AWAY]


def test_a_start_ends_at_once_if_something_must_be_repaired() -> None:
    with pytest.raises(PreflightFailed):
        _require([WRONG, AWAY])


@pytest.mark.parametrize(
    ("code", "waits"), [(KafkaError._AUTHENTICATION, False), (KafkaError._SSL, False), (KafkaError._TRANSPORT, True)]
)
def test_a_client_that_kafka_does_not_let_in_is_not_waited_for(code: int, *, waits: bool) -> None:
    client = ClientSettings("127.0.0.1:1", {})
    admin = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    finding = _unreachable(client, KafkaException(KafkaError(KafkaError._TRANSPORT)), admin, [KafkaError(code)])
    assert isinstance(finding, NoAnswer) == waits
