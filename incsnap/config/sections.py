"""The sections of the settings whose fields depend on each other or on several settings."""

from __future__ import annotations

import os
import re
import zlib
from urllib.parse import urlparse

import platformdirs

from incsnap.config.clients import client_settings
from incsnap.config.declarations.job import PARTITIONS, REPLICATION, TRUNCATE
from incsnap.config.declarations.kinds import LONGEST_NAME, REGEXES, TOPIC
from incsnap.config.patterns import TableFilter, split_list
from incsnap.config.reader import SettingsReader
from incsnap.config.servers import KafkaSettings, MySqlSettings
from incsnap.config.settings import (
    HeartbeatSettings,
    MonitoringSettings,
    Notifications,
    OversizedChanges,
    SignalSettings,
    TopicCreation,
    TopicGroup,
    VerifySettings,
)
from incsnap.config.topics import INVALID
from incsnap.tables import TableId

_DAY_SECONDS = 86_400.0
#: Channels that exist only in Debezium.
_ABSENT_CHANNELS = ("jmx", "in-process")
#: A URI of a folder on this machine. Spark takes `#` and `?` as parts of the folder's name, and PyArrow does not.
_FILE_URI = re.compile(r"file:(?:/|//localhost/+|///+)([^/#?][^#?]*)", re.IGNORECASE)


def mysql(reader: SettingsReader) -> MySqlSettings:
    """Return the settings of the MySQL server."""
    # Debezium draws a random id from 5400 to 6400. Here the id follows from the prefix. So a job that restarts after a
    # crash has the id of its predecessor, and the server closes the predecessor's replication connection.
    own_id = 100_000_000 + zlib.crc32(reader["topic.prefix"].encode()) % 4_000_000_000
    server_id = reader["database.server.id"] or own_id
    reader.defaults["database.server.id"] = str(own_id)
    # For Debezium 0 means no limit. A day has the same effect.
    if reader["incsnap.database.login"] != "password" and reader["database.ssl.mode"] == "disabled":
        reader.problem("database.ssl.mode", "required, or another mode with TLS: Amazon takes tokens over TLS alone")
    query_timeout_seconds = reader["database.query.timeout.ms"] or _DAY_SECONDS
    return MySqlSettings.read(reader, server_id=server_id, query_timeout_seconds=query_timeout_seconds)


def tables(reader: SettingsReader, signal_table: TableId | None) -> TableFilter:
    """Return the filter for captured tables."""
    lists = {}
    for kind in ("database", "table"):
        refuse_both(reader, kind)
        for side in ("include", "exclude"):
            lists[f"{kind}_{side}"] = reader[f"{kind}.{side}.list"]
    return TableFilter(**lists, signal_table=signal_table)


def refuse_both(reader: SettingsReader, kind: str) -> None:
    """Add a problem if the include list and the exclude list of `kind` (database, table or column) are both given."""
    include, exclude = f"{kind}.include.list", f"{kind}.exclude.list"
    if reader.given(include) and reader.given(exclude):
        reader.problems.append(f"{exclude}: set either {include} or {exclude}, not both")


def signals(reader: SettingsReader) -> SignalSettings:
    """Return the settings of signals."""
    channels = _channels(reader, "signal.enabled.channels")
    if "source" in channels and not reader["signal.data.collection"]:
        if reader.given("signal.enabled.channels"):
            reader.warnings.append("signal.enabled.channels: source has no effect without signal.data.collection")
        channels = tuple(channel for channel in channels if channel != "source")
    if not channels:
        reader.warnings.append(
            "No signal can reach this job: set signal.data.collection, or signal.enabled.channels=kafka"
        )
    own_topic = f"{reader['topic.prefix']}-signal"
    topic = reader["signal.kafka.topic"] or own_topic
    reader.defaults["signal.kafka.topic"] = own_topic
    return SignalSettings.read(
        reader,
        channels=channels,
        kafka_topic=topic,
        kafka_bootstrap_servers=reader["signal.kafka.bootstrap.servers"] or reader["bootstrap.servers"],
        consumer=client_settings(reader, "signal.consumer."),
    )


def _channels(reader: SettingsReader, name: str) -> tuple[str, ...]:
    """Return the channels in the setting `name`. Warn of channels that exist only in Debezium, and leave them out."""
    listed: tuple[str, ...] = reader[name]
    if absent := [channel for channel in listed if channel in _ABSENT_CHANNELS]:
        reader.warnings.append(f"{name}: {', '.join(absent)} does not exist in incsnap and is left out")
    return tuple(channel for channel in listed if channel not in absent)


def kafka(reader: SettingsReader) -> KafkaSettings:
    """Return the settings of Kafka."""
    return KafkaSettings.read(reader, producer=client_settings(reader, "producer."))


def topic_creation(reader: SettingsReader) -> TopicCreation:
    """Return how missing topics are created. Warn of groups that `topic.creation.groups` does not list."""
    names = split_list(reader["topic.creation.groups"])
    known = {"groups", "enable", "default", *names}
    if lost := sorted(name for name in reader.prefixed("topic.creation.") if name.partition(".")[0] not in known):
        reader.idle |= {f"topic.creation.{name}": "topic.creation.groups lacks the group" for name in lost}
        listed = ", ".join(f"topic.creation.{name}" for name in lost)
        reader.warnings.append(f"Settings without effect, because topic.creation.groups lacks their group: {listed}")
    default = _topic_group(reader, "default", TopicGroup())
    return TopicCreation(
        groups=tuple(_topic_group(reader, name, default) for name in names if name != "default"), default=default
    )


def _topic_group(reader: SettingsReader, name: str, base: TopicGroup) -> TopicGroup:
    """Return the topic group `name`. `base` supplies numbers that are not given."""
    start = f"topic.creation.{name}."
    numbers = {
        "partitions": reader.read(f"{start}partitions", PARTITIONS, str(base.partitions)),
        "replication.factor": reader.read(f"{start}replication.factor", REPLICATION, str(base.replication_factor)),
    }
    for kind, number in numbers.items():
        if number == 0 and reader.given(start + kind):
            reader.problem(start + kind, "a whole number from 1 on, or -1 for the broker's default")
    patterns = {side: reader.read(start + side, REGEXES) for side in ("include", "exclude")}
    if name != "default" and not reader.given(f"{start}include"):
        reader.warnings.append(f"{start}include is not set: as in Kafka Connect, no topic belongs to the group {name}")
    return TopicGroup(
        name=name,
        # The default group matches all topics that no other group matches, as in Connect.
        include=(".*",) if name == "default" else patterns["include"],
        exclude=() if name == "default" else patterns["exclude"],
        partitions=numbers["partitions"],
        replication_factor=numbers["replication.factor"],
        config={key: text for key, text in reader.prefixed(start).items() if key not in (*numbers, *patterns)},
    )


def notifications(reader: SettingsReader) -> Notifications:
    """Return the settings of notifications."""
    channels = _channels(reader, "notification.enabled.channels")
    if "sink" in channels:
        reader.required("notification.sink.topic.name", "the topic for notification.enabled.channels=sink")
    return Notifications(channels=channels, sink_topic=reader["notification.sink.topic.name"] or None)


def heartbeats(reader: SettingsReader) -> HeartbeatSettings:
    """Return the settings of heartbeats. `read.only` forbids the query."""
    whole, other = reader["topic.heartbeat.name"], reader["heartbeat.topic.name"]
    if whole and other:
        reader.idle["heartbeat.topic.name"] = "topic.heartbeat.name goes first"
        reader.warnings.append("heartbeat.topic.name has no effect beside topic.heartbeat.name")
    topic = whole or other or reader["topic.delimiter"].join((reader["topic.heartbeat.prefix"], reader["topic.prefix"]))
    if reader["heartbeat.interval.ms"] and len(topic) > LONGEST_NAME:
        reader.problem("topic.heartbeat.prefix", f"short enough: a topic's name has at most {LONGEST_NAME} characters")
    query, is_forbidden = reader["heartbeat.action.query"], reader["read.only"]
    if query and not reader["heartbeat.interval.ms"]:
        reader.idle["heartbeat.action.query"] = "it needs heartbeat.interval.ms"
        reader.warnings.append("heartbeat.action.query has no effect without heartbeat.interval.ms")
    if query and is_forbidden:
        reader.idle["heartbeat.action.query"] = "read.only=true forbids it"
        reader.warnings.append("heartbeat.action.query has no effect with read.only=true")
    return HeartbeatSettings.read(reader, topic=topic, action_query="" if is_forbidden else query)


def monitoring(reader: SettingsReader) -> MonitoringSettings:
    """Return the settings of monitoring."""
    for name in ("incsnap.metrics.host", "incsnap.page.token"):
        if reader.given(name) and not reader.given("incsnap.metrics.port"):
            reader.warnings.append(f"{name} has no effect without incsnap.metrics.port")
    return MonitoringSettings.read(reader)


def verification(reader: SettingsReader) -> VerifySettings:
    """Return the settings of comparisons inside the job."""
    if reader.given("incsnap.verify.sample") and not reader.given("incsnap.verify.interval"):
        reader.warnings.append("incsnap.verify.sample has no effect without incsnap.verify.interval")
    return VerifySettings.read(reader)


def oversized_changes(reader: SettingsReader) -> OversizedChanges:
    """Return the handling of changes that are too large for Kafka."""
    if reader["incsnap.oversized.change.handling.mode"] == TRUNCATE:
        reader.required(
            "incsnap.oversized.change.truncate.columns",
            "the columns that incsnap.oversized.change.handling.mode=truncate may cut",
        )
    own_topic = INVALID.sub("_", reader["topic.delimiter"].join((reader["topic.prefix"], "incsnap-dead-letters")))
    topic = reader["incsnap.oversized.change.dead.letter.topic"] or own_topic
    reader.defaults["incsnap.oversized.change.dead.letter.topic"] = own_topic
    if len(topic) > LONGEST_NAME:
        reader.problem("incsnap.oversized.change.dead.letter.topic", TOPIC.allowed)
    return OversizedChanges.read(reader, topic=topic)


def checkpoint_location(reader: SettingsReader) -> str:
    """Return the location of the checkpoint.

    A path is made absolute, because Spark's workers have other working directories.
    """
    location: str = reader["checkpoint.location"]
    if not location and not reader.given("checkpoint.location"):
        # Debezium stores offsets in a topic of Connect. Here the default is a folder for each prefix.
        location = str(platformdirs.user_state_path("incsnap") / (reader["topic.prefix"] or "unnamed"))
        reader.warnings.append(f"checkpoint.location is not set: the job keeps its state in {location}")
        reader.defaults["checkpoint.location"] = location
    scheme = urlparse(location).scheme
    if scheme in ("s3", "s3n"):
        # Spark's name for s3 and s3n is s3a.
        return f"s3a{location[len(scheme) :]}"
    if scheme == "file":
        # Spark reads file:/a, file:///a and file://localhost/a as one path, so the lock needs one path for them.
        local = _FILE_URI.fullmatch(location)
        if local is None:
            allowed = "the file: URI of a folder of this machine without # and ?. Write the folder's path instead"
            reader.problem("checkpoint.location", allowed)
            return location
        return f"file:///{local[1]}"
    return os.path.abspath(location) if location and len(scheme) < 2 else location
