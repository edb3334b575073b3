"""A check of the Kafka cluster before a job starts.

It writes nothing, and returns findings instead of raising errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from incsnap.config.settings import TopicCreation, TopicGroup
from incsnap.errors import ConfigError, IncsnapError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import control_topic
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.refusals import ClientError, sink_error
from incsnap.kafka.topics import CONTROL_CONFIG, creatable_together, partition_counts

#: A problem and its repair, one line each.
Finding = tuple[str, str]
#: Errors of a broker that answers, and does not let this client in.
_LOCKED_OUT = frozenset((KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED))
#: Topics with the brokers' defaults.
_BROKERS_DEFAULTS = TopicCreation()


class NoAnswer(NamedTuple):
    """A finding: no broker answers, or too few for a transaction. To wait may help."""

    problem: str
    repair: str


def cluster_check(
    settings: ClientSettings,
    prefix: str,
    topics: Iterable[str] = (),
    creation: TopicCreation = _BROKERS_DEFAULTS,
    seconds: float = 10.0,
) -> list[Finding]:
    """Return problems with reaching the brokers, with creating topics, and with transactions.

    An empty list means success. `topics` and the control topic are validated, not created. `creation` has the settings
    with which a job creates them. `seconds` is the limit of each of the three requests.
    """
    reasons: list[KafkaError] = []
    options: dict[str, Any] = {**settings.for_admin(), "error_cb": reasons.append}
    try:
        admin = AdminClient(options)
    except KafkaException as problem:
        return [(f"Kafka client settings are wrong: {problem.args[0].str()}", "Correct producer.* in the file.")]
    try:
        admin.list_topics(timeout=seconds)
    except KafkaException as problem:
        return [_unreachable(settings, problem, admin, reasons)]
    control = TopicCreation(default=creation.default.model_copy(update={"config": CONTROL_CONFIG}))
    findings = _creatable(admin, {control_topic(prefix)}, control, seconds)
    findings += _creatable(admin, set(topics), creation, seconds)
    findings += _transactions(settings, f"incsnap-{prefix}-preflight", seconds)
    return findings


def partitions_of_signals(
    bootstrap_servers: str, topic: str, group: str, settings: Mapping[str, str], seconds: float = 3.0
) -> int | None:
    """Return how many partitions the signal topic has; 0 if the topic does not exist.

    Return None if its brokers do not answer. The job waits for these brokers and logs that. Raise ConfigError if a
    setting is wrong, or if the brokers do not let this consumer in.
    """
    reasons: list[KafkaError] = []
    options: dict[str, Any] = {
        "log_level": 0,
        **settings,
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "allow.auto.create.topics": False,
        "error_cb": reasons.append,
    }
    try:
        opened = Consumer(options)
    except KafkaException as problem:
        text = f"Settings of the signal topic's consumer are wrong: {problem.args[0].str()}"
        raise ConfigError(text, "Correct signal.consumer.* in the file.") from problem
    with closing(opened) as consumer:
        try:
            return len(consumer.list_topics(topic, timeout=seconds).topics[topic].partitions)
        except KafkaException:
            consumer.poll(0)  # callbacks with the reasons run only in poll()
    refusal = next((reason for reason in reasons if reason.code() in _LOCKED_OUT), None)
    if refusal is None:
        return None
    raise ConfigError(
        f"Kafka at {bootstrap_servers} does not let the consumer of the signal topic in: {refusal.str()}",
        "Correct signal.consumer.security.protocol and signal.consumer.sasl.* or .ssl.*. This consumer takes none of"
        " producer.*.",
    )


def _unreachable(
    settings: ClientSettings, problem: KafkaException, admin: AdminClient, reasons: list[KafkaError]
) -> Finding:
    """Return the finding that no broker answers, with librdkafka's last reason; a NoAnswer if to wait may help."""
    admin.poll(0)  # callbacks with the reasons run only in poll()
    texts = [reason.str() for reason in reasons]
    known_reasons = [text for text in texts if "brokers are down" not in text] or [problem.args[0].str()]
    finding = NoAnswer(
        f"Kafka does not answer at {settings.bootstrap_servers}: {known_reasons[-1]}",
        "Check bootstrap.servers, that a broker listens there, and producer.security.protocol / producer.sasl.*.",
    )
    # A plain tuple: to wait does not help a client that is not let in.
    return (*finding,) if any(reason.code() in _LOCKED_OUT for reason in reasons) else finding


def _creatable(admin: AdminClient, names: set[str], creation: TopicCreation, seconds: float) -> list[Finding]:
    """Return findings about topics that do not exist and could not be created, one for all topics with one reason."""
    try:
        missing = sorted(names - partition_counts(admin, names).keys())
    except IncsnapError as error:
        return [(error.message, error.hint)]
    groups = {name: creation.group_of(name) for name in missing}
    wishes = [
        NewTopic(
            name,
            num_partitions=group.partitions,
            replication_factor=group.replication_factor,
            config=dict(group.config),
        )
        for name, group in groups.items()
    ]
    answers: dict[str, Any] = {}
    for part in creatable_together(wishes, max((group.partitions for group in groups.values()), default=-1)):
        answers |= admin.create_topics(part, validate_only=True, request_timeout=seconds)
    refused: dict[tuple[str, str], list[str]] = {}
    for name, answer in answers.items():
        try:
            answer.result()
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                refused.setdefault(_refusal(groups[name], problem.args[0]), []).append(name)
    return [
        (f"Topic {alike[0]}{f' and {len(alike) - 1} more' if alike[1:] else ''} cannot be created: {reason}", repair)
        for (reason, repair), alike in refused.items()
    ]


def _refusal(group: TopicGroup, error: KafkaError) -> Finding:
    """Return the reason and the repair of a topic that cannot be created. The topic belongs to `group`."""
    settings = f"topic.creation.{group.name}"
    hints = {
        KafkaError.TOPIC_AUTHORIZATION_FAILED: "Grant CREATE on it (kafka-acls), or create it beforehand.",
        KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Grant CREATE on the cluster (kafka-acls), or create it beforehand.",
        KafkaError.INVALID_REPLICATION_FACTOR: f"Set {settings}.replication.factor to at most the brokers.",
        KafkaError.INVALID_PARTITIONS: f"Set {settings}.partitions to 1 or more.",
        KafkaError.INVALID_CONFIG: f"Correct {settings}.*: after the group it has the names of Kafka's topic settings.",
        KafkaError.TOPIC_EXCEPTION: "Choose a topic.prefix of letters, digits, dot, underscore and hyphen.",
    }
    return error.str(), hints.get(error.code(), "Create it beforehand.")


def _transactions(settings: ClientSettings, name: str, seconds: float) -> list[Finding]:
    """Return a finding if the cluster does not open a transaction."""
    try:
        with TransactionalProducer(settings.for_producer(name)) as producer:
            producer.init_transactions(seconds)
    except ClientError as error:
        if error.code == KafkaError._TIMED_OUT:
            hint = "Start more brokers, or set both settings of the brokers to at most the number of brokers."
            problem = (
                f"Kafka does not open a transaction within {seconds:.0f} s, as if fewer brokers than"
                " transaction.state.log.min.isr were alive, or before the cluster's first transaction fewer than"
                " transaction.state.log.replication.factor"
            )
            # After an outage the first broker answers before the others have started.
            return [NoAnswer(problem, hint)]
        failure = sink_error(f"opening a transaction as {name}", error, name)
        return [(failure.message, failure.hint)]
    except IncsnapError as error:
        return [(error.message, error.hint)]
    return []
