"""The signals in Kafka that a connector has obeyed: it commits its place to a consumer group."""

from __future__ import annotations

from contextlib import closing

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from incsnap.config.settings import Settings
from incsnap.errors import ServerUnreachable
from incsnap.kafka.oauth_login import with_login

_REQUEST_SECONDS = 30.0
_NO_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


def connectors_group(settings: Settings) -> Consumer:
    """Return a consumer of the group to which the connector commits its place in the signal topic."""
    signals = settings.signals
    return Consumer(
        {
            **with_login(signals.consumer),
            "bootstrap.servers": signals.kafka_bootstrap_servers,
            "group.id": signals.kafka_group_id,
            "enable.auto.commit": "false",
        }
    )


def obeyed_signals(settings: Settings, newest: int | None = None) -> int | None:
    """Return the offset of the signal topic from which no signal was obeyed; None if nothing says so.

    `newest`: the offset of the newest signal of which the connector's offset knows (`ConnectorOffset.signal`). With
    read.only=true a connector goes on behind this signal, whatever its group says: it may have been killed before it
    wrote down the snapshot of a later one. Raise ServerUnreachable if Kafka does not answer.
    """
    signals = settings.signals
    if "kafka" not in signals.channels:
        return None
    try:
        with closing(connectors_group(settings)) as consumer:
            (place,) = consumer.committed([TopicPartition(signals.kafka_topic, 0)], timeout=_REQUEST_SECONDS)
    except KafkaException as error:
        raise ServerUnreachable(
            f"Kafka at {signals.kafka_bootstrap_servers} does not say which signals of {signals.kafka_topic} were"
            f" obeyed: {error.args[0].str()}"
        ) from None
    committed = int(place.offset) if place.offset is not None and place.offset >= 0 else None
    known = newest + 1 if newest is not None and settings.read_only else None
    return min((each for each in (committed, known) if each is not None), default=None)


def obeyed_again(settings: Settings) -> str:
    """Return a warning about signals that the job obeys from the topic's beginning on; "" if the topic has none.

    Call this if `obeyed_signals` returns None. Raise ServerUnreachable if Kafka does not answer.
    """
    signals = settings.signals
    if "kafka" not in signals.channels:
        return ""
    try:
        with closing(connectors_group(settings)) as consumer:
            first, end = consumer.get_watermark_offsets(
                TopicPartition(signals.kafka_topic, 0), timeout=_REQUEST_SECONDS
            )
    except KafkaException as error:
        if error.args[0].code() in _NO_TOPIC:
            return ""
        raise ServerUnreachable(
            f"Kafka at {signals.kafka_bootstrap_servers} does not say which signals {signals.kafka_topic} has:"
            f" {error.args[0].str()}"
        ) from None
    if first >= end:
        return ""
    tool = f"kafka-consumer-groups.sh --bootstrap-server {signals.kafka_bootstrap_servers} --reset-offsets --execute"
    return (
        f"the group {signals.kafka_group_id} (signal.kafka.groupId) has no place in {signals.kafka_topic}, so the job"
        " obeys the signals in this topic from its beginning on, also those that the connector has obeyed. To leave out"
        f" all of them: {tool} --group {signals.kafka_group_id} --topic {signals.kafka_topic}:0 --to-latest. Then take"
        " over again"
    )
