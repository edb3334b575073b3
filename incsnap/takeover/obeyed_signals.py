"""The signals in Kafka that a connector has obeyed: it commits its place to a consumer group."""

from __future__ import annotations

from contextlib import closing

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from incsnap.config.settings import Settings
from incsnap.errors import ServerUnreachable, shorten
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.oauth_login import with_login
from incsnap.kafka.topic_ends import topic_ends
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.verify.topic_side import PartitionPart, messages_of
from signals.channels.file import record_of

_REQUEST_SECONDS = 30.0
#: How much older than the offset a signal may be whose effect the offset does not know.
_MARGIN_SECONDS = 60
#: Most characters of signals that a warning lists.
_LISTED = 400
#: Signals whose effect a connector writes into its offset.
_OF_SNAPSHOTS = ("execute-snapshot", "stop-snapshot")
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


def unwritten_signals(settings: Settings, offset: ConnectorOffset, signals_at: int) -> str:
    """Return a warning about obeyed signals of which the connector's offset may not know; "" if there are none.

    Debezium commits its place in the signal topic at once, and Kafka Connect writes the offset once a minute. So a
    connector that was killed in between has lost what the last signals have asked for. A signal counts if its time in
    Kafka is not a minute before that of the offset. The connector looks for signals every five seconds by default, and
    clocks differ.

    `signals_at`: the offset of the signal topic from which no signal was obeyed. Raise ServerUnreachable if Kafka does
    not answer.
    """
    signals, topic = settings.signals, settings.signals.kafka_topic
    if not offset.seconds:
        return ""
    try:
        with closing(connectors_group(settings)) as consumer:
            time = TopicPartition(topic, 0, (offset.seconds - _MARGIN_SECONDS) * 1000)
            (later,) = consumer.offsets_for_times([time], timeout=_REQUEST_SECONDS)
    except KafkaException as error:
        if error.args[0].code() in _NO_TOPIC:
            return ""
        raise _not_named(settings, error) from None
    if later.offset < 0:  # no signal came later
        return ""
    client = ClientSettings(signals.kafka_bootstrap_servers, signals.consumer)
    begin = max(later.offset, offset.signal + 1 if offset.signal is not None else 0)
    end = min(signals_at, topic_ends(client, {topic: 1})[topic, 0])
    if begin >= end:
        return ""
    known = offset.running.signal if offset.running is not None else None
    names = list[str]()
    for message in (each for _, some in messages_of(client, [PartitionPart(topic, 0, begin, end)]) for each in some):
        value = message.value()
        if message.key() != settings.topic_prefix.encode() or value is None:
            continue
        record = record_of(value, str(message.offset()), "kafka")
        if record.type in _OF_SNAPSHOTS and record.id != known:
            names.append(f"{record.id or f'at offset {record.position}'} ({record.type})")
    if not names:
        return ""
    return (
        f"the connector's offset may not know these signals of {topic}, which are newer than the offset, or hardly"
        f" older: {shorten(', '.join(names), _LISTED)}. The connector has obeyed them, and the job does not. If the"
        " connector was killed before it wrote its offset, their effect is lost: if the snapshot of a signal has not"
        " run to its end, send the signal again"
    )


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
        raise _not_named(settings, error) from None
    if first >= end:
        return ""
    tool = f"kafka-consumer-groups.sh --bootstrap-server {signals.kafka_bootstrap_servers} --reset-offsets --execute"
    return (
        f"the group {signals.kafka_group_id} (signal.kafka.groupId) has no place in {signals.kafka_topic}, so the job"
        " obeys the signals in this topic from its beginning on, also those that the connector has obeyed. To leave out"
        f" all of them: {tool} --group {signals.kafka_group_id} --topic {signals.kafka_topic}:0 --to-latest. Then take"
        " over again"
    )


def _not_named(settings: Settings, error: KafkaException) -> ServerUnreachable:
    signals = settings.signals
    return ServerUnreachable(
        f"Kafka at {signals.kafka_bootstrap_servers} does not say which signals {signals.kafka_topic} has:"
        f" {error.args[0].str()}"
    )
