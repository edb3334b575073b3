"""The signals that a job has obeyed, for the connector that continues: it must not obey them again.

Debezium reads the signal topic from the place that it has committed to its consumer group. A job keeps its place in its
own offset and commits nothing. So that place goes to the group with the hand-back. Debezium reads the signal file from
its beginning and empties it; a job never writes the file.
"""

from __future__ import annotations

from contextlib import closing

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.snapshot.offset import Offset
from incsnap.takeover.obeyed_signals import connectors_group

_REQUEST_SECONDS = 30.0


def behind_obeyed(settings: Settings, end: Offset) -> int | None:
    """Return the offset of the signal topic behind the signals that a job has obeyed up to `end`.

    Return None if the job has read no message of the topic.
    """
    place = end.signal_positions.get("kafka") if "kafka" in settings.signals.channels else None
    return place if isinstance(place, int) else None


def what_the_file_needs(settings: Settings, end: Offset) -> list[str]:
    """Return in sentences what a person must do if the job has obeyed lines of the signal file up to `end`."""
    signals = settings.signals
    match end.signal_positions.get("file") if "file" in signals.channels else None:
        case [int(reached), *_] if reached > 0:
            return [f"The connector obeys each line of {signals.file} again. Empty this file before it starts."]
    return []


def commit_signals(settings: Settings, offset: int) -> None:
    """Let the connector obey signals from `offset` of the signal topic on: commit it to the connector's group.

    Raise ServerUnreachable if Kafka does not answer, and ConfigError if it refuses.
    """
    signals = settings.signals
    place = TopicPartition(signals.kafka_topic, 0, offset)
    try:
        with closing(connectors_group(settings)) as consumer:
            # This question has a limit in time, unlike a commit.
            consumer.committed([place], timeout=_REQUEST_SECONDS)
            (committed,) = consumer.commit(offsets=[place], asynchronous=False)
            error = committed.error
    except KafkaException as problem:
        error = problem.args[0]
    if error is None or error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:  # no topic: there is nothing to obey
        return
    if error.code() < 0 or error.retriable():
        raise ServerUnreachable(
            f"Kafka at {signals.kafka_bootstrap_servers} does not take the place in the topic {signals.kafka_topic}:"
            f" {error.str()}"
        )
    raise ConfigError(
        f"Kafka refuses the place in {signals.kafka_topic} for the group {signals.kafka_group_id}: {error.str()}."
        " The connector would obey old signals again",
        "Stop the connector and all other consumers of this group (signal.kafka.groupId), and grant READ on the group"
        " and the topic. Then try again.",
    )


def how_to_commit(settings: Settings, offset: int) -> str:
    """Return in a sentence how a person lets the connector obey signals from `offset` of the signal topic on."""
    signals = settings.signals
    tool = f"kafka-consumer-groups.sh --bootstrap-server {signals.kafka_bootstrap_servers} --reset-offsets --execute"
    place = f"--group {signals.kafka_group_id} --topic {signals.kafka_topic}:0 --to-offset {offset}"
    return (
        f"The job has obeyed the signals of {signals.kafka_topic} before offset {offset}. Give this place to the"
        f" connector's group, or the connector obeys them again: {tool} {place}"
    )
