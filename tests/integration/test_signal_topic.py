"""The Kafka channel: each signal once by the position handed in; foreign keys passed over; a missing topic awaited."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.fetched_kafka import breakable_kafka
from signals import send
from signals.channels import Polled
from signals.channels.kafka_topic import SignalTopic
from signals.parse import parse
from signals.records import InvalidSignal
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.servers


@pytest.fixture
def topic(kafka_address: str, topic_prefix: str) -> Iterator[str]:
    name = f"{topic_prefix}-signal"
    yield name
    AdminClient({"bootstrap.servers": kafka_address}).delete_topics([name], request_timeout=30)


def _create(kafka_address: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka_address})
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)], request_timeout=30)[topic].result()


def _until_records(channel: SignalTopic, position: int | None, wait_seconds: float = 0.1) -> Polled:
    """The first that come; none where nothing came as long as a test waits."""
    end = time.monotonic() + PATIENCE_SECONDS
    polled = channel.poll(position, wait_seconds)
    while not polled.records and time.monotonic() < end:
        polled = channel.poll(polled.position, wait_seconds)
    return polled


def _channel(kafka_address: str, topic: str, prefix: str) -> SignalTopic:
    return SignalTopic(kafka_address, topic, prefix, "kafka-signal")


def test_signals_are_read_once_from_the_position_of_the_last_time(
    kafka_address: str, topic: str, topic_prefix: str
) -> None:
    _create(kafka_address, topic)
    for name, key in (("a", topic_prefix), ("foreign", "other"), ("b", topic_prefix)):
        send.to_topic(kafka_address, topic, key, name, "pause-snapshot", {})
    with closing(_channel(kafka_address, topic, topic_prefix)) as channel:
        ids: list[str | None] = []
        position = None
        while len(ids) < 2:
            polled = _until_records(channel, position)
            assert polled.records
            ids += [record.id for record in polled.records]
            position = polled.position
        assert ids == ["a", "b"]
        assert channel.poll(3, 0.3) == Polled((), 3)
        send.to_topic(kafka_address, topic, topic_prefix, "c", "pause-snapshot", {})
        assert [record.id for record in _until_records(channel, 3).records] == ["c"]
    with closing(_channel(kafka_address, topic, topic_prefix)) as again:
        assert [record.id for record in _until_records(again, 2).records][:1] == ["b"]


def test_a_poll_waits_for_nothing_and_a_missing_topic_is_awaited(
    kafka_address: str, topic: str, topic_prefix: str
) -> None:
    with closing(_channel(kafka_address, topic, topic_prefix)) as channel:
        assert channel.poll(None) == Polled((), None)
        assert topic not in AdminClient({"bootstrap.servers": kafka_address}).list_topics(timeout=60).topics
        _create(kafka_address, topic)
        send.to_topic(kafka_address, topic, topic_prefix, "a", "pause-snapshot", {})
        assert [record.id for record in _until_records(channel, None).records] == ["a"]


def test_messages_that_are_no_signals_are_reported_and_passed(
    kafka_address: str, topic: str, topic_prefix: str
) -> None:
    _create(kafka_address, topic)
    producer = Producer({"bootstrap.servers": kafka_address})
    for value in (b"nonsense", b"[]", None, json.dumps({"type": "pause-snapshot"}).encode()):
        producer.produce(topic, key=topic_prefix.encode(), value=value, partition=0)
    assert producer.flush(60) == 0
    with closing(_channel(kafka_address, topic, topic_prefix)) as channel:
        polled = _until_records(channel, None)
        records = list(polled.records)
        while len(records) < 3:
            polled = _until_records(channel, polled.position)
            assert polled.records
            records += polled.records
        bad, worse, good = records[:3]
    assert isinstance(parse(bad), InvalidSignal)
    assert isinstance(parse(worse), InvalidSignal)
    assert not isinstance(parse(good), InvalidSignal)


def test_a_position_the_topic_no_longer_holds_starts_again_at_the_earliest(
    kafka_address: str, topic: str, topic_prefix: str
) -> None:
    _create(kafka_address, topic)
    send.to_topic(kafka_address, topic, topic_prefix, "a", "pause-snapshot", {})
    with closing(_channel(kafka_address, topic, topic_prefix)) as channel:
        polled = _until_records(channel, 1000)
        assert [record.id for record in polled.records] == ["a"]
        assert polled.position == 1


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("apt-get") is None, reason="needs a broker of its own to kill"
)
def test_a_broker_that_goes_and_comes_is_one_line_each_and_signals_go_on(
    topic_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with breakable_kafka() as (address, broker):
        topic = f"{topic_prefix}-signal"
        _create(address, topic)
        send.to_topic(address, topic, topic_prefix, "a", "pause-snapshot", {})
        with closing(_channel(address, topic, topic_prefix)) as channel:
            assert [record.id for record in _until_records(channel, None).records] == ["a"]
            caplog.clear()
            broker.kill()
            wait_until(lambda: channel.poll(1) == Polled((), 1) and bool(caplog.messages))
            broker.start()
            wait_until(lambda: channel.poll(1) == Polled((), 1) and len(caplog.messages) > 1)
            send.to_topic(address, topic, topic_prefix, "b", "pause-snapshot", {})
            assert [record.id for record in _until_records(channel, 1).records] == ["b"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.INFO]
    gone, back = caplog.messages
    assert gone.startswith(f"The signal topic {topic} cannot be read, because no broker ({address}) can be reached: ")
    assert back == f"The signal topic {topic} can be read again"
