"""The transaction that a killed worker of Kafka Connect has left open, on a real Kafka."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, Producer

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.kafka.topics import admin_client, ensure_topics
from incsnap.takeover.open_transaction import end_transaction, task_transaction
from tests.support.kafka import unique

pytestmark = pytest.mark.servers


def test_an_open_transaction_is_ended_and_its_producer_writes_no_more(kafka_address: str) -> None:
    client, topic = ClientSettings(kafka_address), f"{unique('open')}.d.t"
    ensure_topics(admin_client(client), [topic], 1)
    worker = {"group.id": unique("workers"), "exactly.once.source.support": "enabled"}
    name = task_transaction(worker, "shop")
    hung, after = (Producer({"bootstrap.servers": kafka_address, **more}) for more in ({"transactional.id": name}, {}))
    hung.init_transactions(30)
    hung.begin_transaction()
    hung.produce(topic, b"of the transaction")
    hung.flush(30)
    after.produce(topic, b"behind it")
    after.flush(30)
    assert topic_ends(client, {topic: 1}) == {(topic, 0): 0}

    assert end_transaction(client, name) == ""

    assert topic_ends(client, {topic: 1})[topic, 0] > 1
    with pytest.raises(KafkaException):
        hung.commit_transaction(30)


@pytest.mark.parametrize(
    ("worker", "connector", "expected"),
    [
        ({"group.id": "g", "exactly.once.source.support": "enabled"}, "shop", "g-shop-0"),
        ({"group.id": "g", "exactly.once.source.support": "preparing"}, "shop", ""),
        ({"group.id": "g"}, "shop", ""),
        ({"exactly.once.source.support": "enabled"}, "shop", ""),
        ({"group.id": "g", "exactly.once.source.support": "enabled"}, "", ""),
    ],
)
def test_only_a_worker_that_writes_exactly_once_has_a_transaction(
    worker: dict[str, str], connector: str, expected: str
) -> None:
    assert task_transaction(worker, connector) == expected
