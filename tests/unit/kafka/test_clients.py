"""Tests of the settings of Kafka clients, and of the meaning of their errors."""

from __future__ import annotations

import secrets

import pytest
from confluent_kafka import KafkaError

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import client_error, control_topic, group_of, transactional_id
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.refusals import ClientError, SinkRefused, sink_error
from incsnap.kafka.topic_limits import TopicLimit, surely_exceeds


def test_users_win_over_defaults_but_not_over_exactly_once() -> None:
    given = {"linger.ms": "20", "acks": "1", "enable.idempotence": "false", "sasl.password": "x"}
    settings = ClientSettings("h:1", given).for_producer("id")
    assert settings["linger.ms"] == "20"
    assert settings["compression.type"] == "lz4"
    assert (settings["acks"], settings["enable.idempotence"], settings["transactional.id"]) == ("all", "true", "id")


def test_consumers_and_admin_clients_are_told_only_how_to_connect() -> None:
    given = {"linger.ms": "20", "sasl.password": "x", "security.protocol": "SASL_SSL", "ssl.ca.location": "/ca.pem"}
    settings = ClientSettings("h:1", given)
    admin = settings.for_admin()
    assert "linger.ms" not in admin
    assert (admin["sasl.password"], admin["security.protocol"], admin["ssl.ca.location"]) == (
        "x",
        "SASL_SSL",
        "/ca.pem",
    )
    consumer = settings.for_consumer("g")
    assert (consumer["isolation.level"], consumer["enable.auto.commit"]) == ("read_committed", "false")


def test_the_defaults_are_settings_that_librdkafka_knows() -> None:
    TransactionalProducer(ClientSettings("localhost:1").for_producer("x")).close()


def test_the_queue_has_room_for_the_largest_message() -> None:
    """librdkafka never takes a message that is larger than its queue. It says only that the queue is full."""

    def kilobytes(given: dict[str, str]) -> int:
        return int(ClientSettings("h:1", given).for_producer("id")["queue.buffering.max.kbytes"])

    assert kilobytes({}) == 65_536
    assert kilobytes({"message.max.bytes": "200000000"}) * 1024 > 200_000_000
    assert kilobytes({"message.max.bytes": "200000000", "queue.buffering.max.kbytes": "1000"}) == 1_000


def test_names_hold_the_prefix_so_that_jobs_do_not_meet() -> None:
    assert transactional_id("shop", 3) == "incsnap-shop-3"
    assert group_of("shop", "j1") == "incsnap-shop-j1"
    assert control_topic("shop") == "shop.incsnap-control"


@pytest.mark.parametrize(
    ("code", "resumable", "hint"),
    [
        (KafkaError._FENCED, True, "topic.prefix"),
        (KafkaError._TIMED_OUT, True, "repeated"),
        (KafkaError.NOT_ENOUGH_REPLICAS, True, "repeated"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, True, "Its earlier records are gone"),
        (KafkaError.MSG_SIZE_TOO_LARGE, False, "producer.max.request.size"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, False, "kafka-acls"),
    ],
)
def test_an_error_says_whether_trying_again_helps(code: int, resumable: bool, hint: str) -> None:
    error = sink_error("committing", ClientError(code, "said the broker"), "incsnap-p-0")
    assert error.resumable is resumable
    assert isinstance(error, SinkRefused) is not resumable
    assert hint in error.hint
    assert "said the broker" in error.message


@pytest.mark.parametrize(
    "code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_request_is_repeated_while_another_broker_takes_over(code: int) -> None:
    assert client_error(KafkaError(code)).retriable


def test_a_record_exceeds_a_topic_only_if_no_compression_helps() -> None:
    limit = TopicLimit(2000)
    hard, soft = secrets.token_bytes(5000), b"x" * 5000

    def surely(content: bytes, **settings: str) -> bool:
        return surely_exceeds(content, limit, ClientSettings("", {f"compression.{k}": v for k, v in settings.items()}))

    assert surely(soft, type="none")
    assert surely(hard, type="lz4")
    assert not surely(soft, type="lz4")
    assert not surely(hard, type="lz4", level="12")
    assert not surely(hard[:1900], type="none")
    assert surely_exceeds(soft, TopicLimit(2000, "uncompressed"), ClientSettings(""))
