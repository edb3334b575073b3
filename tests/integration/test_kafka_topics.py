"""Topics and the Kafka part of the preflight on a real broker."""

from __future__ import annotations

import socket

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from incsnap.config.settings import TopicCreation, TopicGroup
from incsnap.errors import SinkError
from incsnap.kafka import topics as kafka_topics
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import control_topic
from incsnap.kafka.preflight import cluster_check, partitions_of_signals
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.refusals import ClientError
from incsnap.kafka.topics import admin_client, ensure_control_topic, ensure_topics, partition_counts
from tests.support.kafka import unique

pytestmark = pytest.mark.servers
SECONDS = 30.0


def _created(**settings: object) -> TopicCreation:
    return TopicCreation(default=TopicGroup.model_validate(settings))


@pytest.fixture
def admin(kafka_address: str) -> AdminClient:
    return admin_client(ClientSettings(kafka_address))


def drop(admin: AdminClient, *names: str) -> None:
    for answer in admin.delete_topics(list(names), request_timeout=30).values():
        answer.result()


def test_missing_topics_are_created_and_existing_ones_keep_their_partitions(admin: AdminClient) -> None:
    name = unique("topics")
    assert partition_counts(admin, [name]) == {}
    assert ensure_topics(admin, [name], partitions=3) == {name: 3}
    assert ensure_topics(admin, [name, name + "2"], partitions=5) == {name: 3, name + "2": 5}
    by_default = ensure_topics(admin, [name + "3"])[name + "3"]
    assert by_default >= 1
    drop(admin, name, name + "2", name + "3")


def test_the_control_topic_is_compacted_and_grows_with_the_buckets(admin: AdminClient) -> None:
    prefix = unique("control")
    name = ensure_control_topic(admin, prefix, 1)
    assert ensure_control_topic(admin, prefix, 4) == name
    assert ensure_control_topic(admin, prefix, 2) == name
    assert partition_counts(admin, [name]) == {name: 4}
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    config = admin.describe_configs([resource], request_timeout=30)[resource].result()
    assert config["cleanup.policy"].value == "compact"
    drop(admin, name)


def test_a_topic_that_is_missing_is_not_made_by_writing_to_it(kafka_address: str, admin: AdminClient) -> None:
    name = unique("missing")
    settings = ClientSettings(kafka_address, {"topic.metadata.propagation.max.ms": "1000"})
    with TransactionalProducer(settings.for_producer(unique("writer"))) as producer:
        producer.init_transactions(SECONDS)
        producer.begin()
        producer.send_one(name, 0, b"key", b"value")
        with pytest.raises(ClientError):
            producer.commit(SECONDS)
        assert producer.refused
        assert name in producer.refused.text
    assert partition_counts(admin, [name]) == {}


def test_the_partitions_of_a_signal_topic_are_told_and_none_is_made(kafka_address: str, admin: AdminClient) -> None:
    name = unique("signals")
    assert partitions_of_signals(kafka_address, name, "kafka-signal", {}) == 0
    assert partition_counts(admin, [name]) == {}
    ensure_topics(admin, [name], partitions=3)
    assert partitions_of_signals(kafka_address, name, "kafka-signal", {}) == 3
    assert partitions_of_signals("127.0.0.1:1", name, "kafka-signal", {}, seconds=1.0) is None
    drop(admin, name)


def test_a_topic_that_cannot_be_created_is_named(admin: AdminClient) -> None:
    with pytest.raises(SinkError, match="creating topic"):
        ensure_topics(admin, [unique("replicas")], replication=9)


def test_a_fit_cluster_gives_no_findings_and_nothing_is_created(kafka_address: str, admin: AdminClient) -> None:
    prefix = unique("fit")
    assert cluster_check(ClientSettings(kafka_address), prefix, [f"{prefix}.d.t"]) == []
    assert partition_counts(admin, [control_topic(prefix), f"{prefix}.d.t"]) == {}


def test_findings_come_all_at_once_and_one_line_each(kafka_address: str) -> None:
    settings = ClientSettings(kafka_address, {"transaction.timeout.ms": "86400000"})
    findings = cluster_check(settings, unique("bad"), ["has space"], _created(replication_factor=9))
    text = "\n".join(f"{problem} | {hint}" for problem, hint in findings)
    assert text.count("\n") == len(findings) - 1
    assert "has space" in text
    assert "replication" in text
    assert "producer.transaction.timeout.ms" in text


def test_a_server_that_does_not_answer_is_one_finding() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    ((problem, hint),) = cluster_check(ClientSettings(address), "p", seconds=5)
    assert address in problem
    assert "refused" in problem
    assert "bootstrap.servers" in hint


def test_a_wrong_client_setting_is_one_finding(kafka_address: str) -> None:
    for given in ({"security.protocol": "TLS"}, {"linger.millis": "1"}):
        ((problem, hint),) = cluster_check(ClientSettings(kafka_address, given), "p")
        assert next(iter(given)) in problem
        assert hint


def test_more_partitions_than_a_broker_takes_in_one_request_are_no_finding(kafka_address: str) -> None:
    prefix = unique("many")
    topics = [f"{prefix}.d.t{number}" for number in range(6)]

    assert cluster_check(ClientSettings(kafka_address), prefix, topics, _created(partitions=2_000)) == []


def test_a_misspelt_setting_of_topics_is_one_finding(kafka_address: str) -> None:
    prefix = unique("misspelt")
    creation = _created(config={"retention.milliseconds": "1"})

    ((problem, hint),) = cluster_check(ClientSettings(kafka_address), prefix, [f"{prefix}.a", f"{prefix}.b"], creation)

    assert f"{prefix}.a and 1 more cannot be created" in problem
    assert "retention.milliseconds" in problem
    assert "topic.creation.default.*" in hint
    right = _created(config={"retention.ms": "1"})
    assert cluster_check(ClientSettings(kafka_address), prefix, [f"{prefix}.a"], right) == []


def test_topics_are_made_in_several_requests_where_they_are_many(
    admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_topics, "_PARTITIONS_TOGETHER", 4)
    names = [unique("parts") for _ in range(3)]
    assert ensure_topics(admin, names, partitions=2) == dict.fromkeys(names, 2)
    drop(admin, *names)
