"""The parts of the settings, each from its own names: defaults, ranges and what depends on what."""

from __future__ import annotations

import os
import re
import zlib
from urllib.parse import urlparse

from pydantic import SecretStr

from incsnap.config.clients import client_settings
from incsnap.config.patterns import TableFilter, split_list
from incsnap.config.reading import SettingsReader
from incsnap.config.servers import KafkaSettings, MySqlSettings
from incsnap.config.settings import Notifications, RetrySettings, SignalSettings
from incsnap.config.topic_groups import TopicCreation, TopicGroup
from incsnap.config.user_folders import checkpoint_folder
from incsnap.tables import TableId

SSL_MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
_PEM = (".pem", ".crt", ".cer")
_TO_PEM = {
    "truststore": "keytool -exportcert -rfc -keystore STORE -alias ALIAS -file ca.pem",
    "keystore": (
        "keytool -importkeystore -srckeystore STORE -destkeystore client.p12 -deststoretype PKCS12, and then (a PKCS12"
        " store by this alone) openssl pkcs12 -in client.p12 -out client.pem"
    ),
}


_DAY_MS = 86_400_000


def mysql(reading: SettingsReader) -> MySqlSettings:
    prefix = reading.text("topic.prefix")
    ssl_ca, ssl_cert = (
        _pem(reading, "database.ssl.truststore"),
        _pem(reading, "database.ssl.keystore"),
    )
    return MySqlSettings(
        hostname=reading.required("database.hostname", "the host of the MySQL server"),
        port=reading.integer("database.port", 3306, 1, 65535),
        user=reading.required("database.user", "the MySQL user, with REPLICATION SLAVE, REPLICATION CLIENT and SELECT"),
        password=SecretStr(reading.text("database.password")),
        ssl_mode=reading.choice("database.ssl.mode", "preferred", SSL_MODES),
        ssl_ca=ssl_ca,
        ssl_cert=ssl_cert,
        ssl_key=ssl_cert,
        ssl_key_password=SecretStr(reading.text("database.ssl.keystore.password")),
        # Debezium draws a number from 5400 to 6400. Ours follows from the prefix: a job started again after a crash
        # then has the id of its dead predecessor, and the server ends a replication connection left over from it.
        server_id=reading.integer(
            "database.server.id", 100_000_000 + zlib.crc32(prefix.encode()) % 4_000_000_000, 1, 2**32 - 1
        ),
        connect_timeout_seconds=reading.integer("connect.timeout.ms", 30_000, 1, 3_600_000) / 1000,
        # 0 is no bound for Debezium: a day is none either.
        query_timeout_seconds=(reading.integer("database.query.timeout.ms", 600_000, 0, _DAY_MS) or _DAY_MS) / 1000,
    )


def _pem(reading: SettingsReader, name: str) -> str | None:
    """Debezium names Java key stores here; we read PEM under the same names (a key store holds certificate and key)."""
    path = reading.text(name)
    if path and not path.lower().endswith(_PEM):
        reading.problem(
            name, f"a PEM file ({', '.join(_PEM)}); a Java key store is converted by {_TO_PEM[name.rpartition('.')[2]]}"
        )
    return path or None


def tables(reading: SettingsReader, signal_table: TableId | None) -> TableFilter:
    lists: dict[str, tuple[str, ...]] = {}
    for kind in ("database", "table"):
        for side in ("include", "exclude"):
            name = f"{kind}.{side}.list"
            patterns = split_list(reading.text(name))
            lists[f"{kind}_{side}"] = tuple(pattern for pattern in patterns if reading.sound(name, pattern))
        if reading.given(f"{kind}.include.list") and reading.given(f"{kind}.exclude.list"):
            reading.problems.append(f"{kind}.include.list and {kind}.exclude.list: only one of the two may be given")
    return TableFilter(**lists, signal_table=signal_table)


def signals(reading: SettingsReader, bootstrap: str) -> SignalSettings:
    collection = None
    text = reading.text("signal.data.collection")
    if text:
        try:
            collection = TableId.parse(text)
        except ValueError:
            reading.problem("signal.data.collection", "of the form database.table (one table)")
    channels = _channels(reading, "signal.enabled.channels", ("source", "kafka", "file"), ("jmx", "in-process"))
    if not reading.given("signal.enabled.channels"):
        channels = ("source",)
    if "source" in channels and not text:
        if reading.given("signal.enabled.channels"):
            reading.warnings.append(
                "signal.enabled.channels has source, but signal.data.collection names no table; it is left out"
            )
        channels = tuple(channel for channel in channels if channel != "source")
    if not channels:
        reading.warnings.append(
            "No signal can reach this job: set signal.data.collection, or signal.enabled.channels=kafka"
        )
    topic = reading.text("signal.kafka.topic", f"{reading.text('topic.prefix')}-signal")
    if reading.given("signal.kafka.topic") and not _TOPIC_NAME.match(topic):
        reading.problem("signal.kafka.topic", "a topic name (letters, digits, . _ -)")
    return SignalSettings(
        channels=channels,
        data_collection=collection,
        kafka_topic=topic,
        kafka_bootstrap_servers=_brokers(reading, "signal.kafka.bootstrap.servers") or bootstrap,
        kafka_group_id=reading.text("signal.kafka.groupId", "kafka-signal"),
        consumer=client_settings(reading, "signal.consumer."),
        file=reading.text("signal.file", "file-signals.txt"),
        # Debezium waits 5 s; polling costs us no request (librdkafka fetches ahead), and a signal should start at once.
        poll_interval_ms=reading.integer("signal.poll.interval.ms", 100, 1, 3_600_000),
    )


def _channels(reading: SettingsReader, name: str, here: tuple[str, ...], not_here: tuple[str, ...]) -> tuple[str, ...]:
    chosen: list[str] = []
    absent: list[str] = []
    for word in split_list(reading.text(name)):
        if word in here:
            chosen.append(word)
        elif word in not_here:
            absent.append(word)
        else:
            reading.problems.append(f"{name}: {word!r} is not one of: {', '.join(here)}")
    if absent:
        reading.warnings.append(
            f"{name}: {', '.join(absent)} does not exist here and is left out ({', '.join(here)} do)"
        )
    return tuple(dict.fromkeys(chosen))


def _brokers(reading: SettingsReader, name: str) -> str:
    text = reading.text(name)
    for broker in split_list(text):
        host, _, port = broker.removeprefix("PLAINTEXT://").rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            reading.problem(name, "host:port[,host:port...]")
            break
    return text


def kafka(reading: SettingsReader, *, needed: bool) -> KafkaSettings:
    if needed:
        reading.required("bootstrap.servers", "the Kafka brokers as host:port[,host:port...]")
    return KafkaSettings(
        bootstrap_servers=_brokers(reading, "bootstrap.servers"), producer=client_settings(reading, "producer.")
    )


def topic_prefix(reading: SettingsReader) -> str:
    older = " (Debezium 1 called it database.server.name)" if reading.given("database.server.name") else ""
    prefix = reading.required("topic.prefix", f"the first part of every topic's name, one per job{older}")
    if prefix and not _TOPIC_NAME.match(prefix):
        reading.problem("topic.prefix", "made of letters, digits, . _ -")
    return prefix


def topic_delimiter(reading: SettingsReader) -> str:
    delimiter = reading.text("topic.delimiter", ".")
    if not _TOPIC_NAME.match(delimiter):
        reading.problem("topic.delimiter", "made of letters, digits, . _ -")
    return delimiter


def topic_creation(reading: SettingsReader) -> TopicCreation:
    names = split_list(reading.text("topic.creation.groups"))
    known = {"groups", "enable", "default", *names}
    lost = sorted(name for name in reading.prefixed("topic.creation.") if name.partition(".")[0] not in known)
    if lost:
        reading.warnings.append(f"Groups that topic.creation.groups does not name: topic.creation.{', '.join(lost)}")
    default = _topic_group(reading, "default", TopicGroup())
    return TopicCreation(
        groups=tuple(_topic_group(reading, name, default) for name in names if name != "default"), default=default
    )


def _topic_group(reading: SettingsReader, name: str, base: TopicGroup) -> TopicGroup:
    """``base``: where numbers that are not given come from."""
    start = f"topic.creation.{name}."
    given = reading.prefixed(start)
    numbers = {
        "partitions": reading.integer(start + "partitions", base.partitions, -1, 100_000),
        "replication.factor": reading.integer(start + "replication.factor", base.replication_factor, -1, 100),
    }
    for kind, number in numbers.items():
        if kind in given and number == 0:
            reading.problem(start + kind, "a whole number from 1 on, or -1 for the broker's default")
    patterns = {side: split_list(reading.text(start + side)) for side in ("include", "exclude")}
    for side, listed in patterns.items():
        for pattern in listed:
            reading.sound(start + side, pattern)
    if name != "default" and not patterns["include"]:
        reading.required(start + "include", "the regular expressions of the group's topics")
    return TopicGroup(
        name=name,
        # The default group takes all that no other takes, as in Connect.
        include=(".*",) if name == "default" else patterns["include"],
        exclude=() if name == "default" else patterns["exclude"],
        partitions=numbers["partitions"],
        replication_factor=numbers["replication.factor"],
        config={key: text for key, text in given.items() if key not in (*numbers, *patterns)},
    )


def notifications(reading: SettingsReader) -> Notifications:
    channels = _channels(reading, "notification.enabled.channels", ("sink", "log"), ("jmx",))
    topic = reading.text("notification.sink.topic.name") or None
    if "sink" in channels and topic is None:
        reading.required("notification.sink.topic.name", "the topic for notification.enabled.channels=sink")
    if topic is not None and not _TOPIC_NAME.match(topic):
        reading.problem("notification.sink.topic.name", "a topic name (letters, digits, . _ -)")
    return Notifications(channels=channels, sink_topic=topic)


def retries(reading: SettingsReader) -> RetrySettings:
    return RetrySettings(
        max_retries=reading.integer("errors.max.retries", -1, -1),
        initial_delay_ms=reading.integer("errors.retry.delay.initial.ms", 300, 1),
        max_delay_ms=reading.integer("errors.retry.delay.max.ms", 10_000, 1),
    )


def checkpoint_location(reading: SettingsReader) -> str:
    """A path is made absolute: Spark's workers have working directories of their own."""
    location = reading.text("checkpoint.location")
    if not location and not reading.given("checkpoint.location"):
        # Debezium's place is Connect's topic of offsets; here a folder, one for each prefix.
        location = str(checkpoint_folder(reading.text("topic.prefix")))
        reading.warnings.append(f"checkpoint.location is not given: the job keeps its state in {location}")
        reading.defaults["checkpoint.location"] = location
    scheme = urlparse(location).scheme
    if scheme in ("s3", "s3n"):
        # Spark's name for all three.
        return f"s3a{location[len(scheme) :]}"
    return os.path.abspath(location) if location and len(scheme) < 2 else location
