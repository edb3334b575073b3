"""The topic of Connect's offsets: what is written there is read, and lies where Kafka Connect puts it."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import KeptOffset, kept_offsets
from incsnap.takeover.hand_back import HandBack
from incsnap.takeover.offset_targets import to_topic
from tests.support.kafka import read_all

pytestmark = pytest.mark.servers


def test_an_offset_that_is_handed_back_is_the_newest_of_its_connector(kafka_address: str, topic_prefix: str) -> None:
    topic, client = f"{topic_prefix}-offsets", ClientSettings(kafka_address)
    assert kept_offsets(client, topic) == {}
    admin = AdminClient(client.for_admin())
    admin.create_topics([NewTopic(topic, 5, 1)], request_timeout=30)[topic].result(30)

    for pos in (4, 5):
        to_topic(client, topic, "inventory", HandBack("shop", {"pos": pos}, ()))
    to_topic(client, topic, "other", HandBack("stock", {"pos": 6}, ()))

    assert kept_offsets(client, topic) == {
        ("inventory", "shop"): KeptOffset("inventory", "shop", {"pos": 5}),
        ("other", "stock"): KeptOffset("other", "stock", {"pos": 6}),
    }
    # Computed with org.apache.kafka.common.utils.Utils: toPositive(murmur2(key)) % 5
    inventory = [read for read in read_all(kafka_address, topic, range(5)) if b"inventory" in (read.key or b"")]
    assert [read.partition for read in inventory] == [0, 0]


def test_debezium_server_gets_the_offset_under_the_name_that_it_uses(kafka_address: str, topic_prefix: str) -> None:
    topic, client = f"{topic_prefix}-offsets", ClientSettings(kafka_address)
    admin = AdminClient(client.for_admin())
    admin.create_topics([NewTopic(topic, 1, 1)], request_timeout=30)[topic].result(30)
    to_topic(client, topic, "kafka", HandBack("shop", {"pos": 4}, ()))

    to_topic(client, topic, "inventory", HandBack("shop", {"pos": 5}, ()))

    assert kept_offsets(client, topic) == {("kafka", "shop"): KeptOffset("kafka", "shop", {"pos": 5})}
