"""Names of settings of the Java clients: each is translated, refused, or without effect with a warning.

Names that librdkafka does not know would stop the start at the connection to Kafka.
"""

from __future__ import annotations

import ctypes

import pytest

from incsnap.config.clients import client_settings
from incsnap.config.names import words
from incsnap.config.reader import SettingsReader
from incsnap.kafka.librdkafka import loaded_library
from tests.support.job_settings import LEAST

#: All names of ProducerConfig and ConsumerConfig in Kafka 4.3.1, without the internal ones, and names of interceptors.
_JAVA = words(
    """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size bootstrap.servers
    buffer.memory check.crcs client.dns.lookup client.id client.rack compression.gzip.level
    compression.lz4.level compression.type compression.zstd.level config.providers connections.max.idle.ms
    default.api.timeout.ms delivery.timeout.ms enable.auto.commit enable.idempotence enable.metrics.push
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id
    group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes isolation.level
    key.deserializer key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size metadata.max.age.ms
    metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms partition.assignment.strategy
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.client.callback.handler.class
    sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
    sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    security.protocol security.providers send.buffer.bytes session.timeout.ms share.acknowledgement.mode
    share.acquire.mode socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
    ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
    ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type transaction.timeout.ms
    transaction.two.phase.commit.enable transactional.id value.deserializer value.serializer
    auto.include.jmx.reporter confluent.monitoring.interceptor.bootstrap.servers
    confluent.monitoring.interceptor.sasl.mechanism metrics.context.team
    """
)
_UNKNOWN = -2  # RD_KAFKA_CONF_UNKNOWN


def _is_known(name: str) -> bool:
    """Whether librdkafka has the setting `name`, which may have other values than the one that is tried."""
    lib, reason = loaded_library(), ctypes.create_string_buffer(512)
    conf = lib.rd_kafka_conf_new()
    result = lib.rd_kafka_conf_set(conf, name.encode(), b"x", reason, len(reason))
    lib.rd_kafka_conf_destroy(conf)
    return bool(result != _UNKNOWN)


@pytest.mark.parametrize("prefix", ["producer.", "producer.override.", "signal.consumer."])
def test_no_name_of_a_java_client_reaches_librdkafka_that_it_does_not_know(prefix: str) -> None:
    unknown, lost = [], []
    for name in sorted(_JAVA):
        reader = SettingsReader({**LEAST, prefix + name: "x"})
        translated = client_settings(reader, prefix.removesuffix("override."))
        unknown += [each for each in translated if not _is_known(each)]
        if not translated and not reader.problems and prefix + name not in reader.idle:
            lost.append(name)
    assert (unknown, lost) == ([], [])


def test_the_question_to_librdkafka_can_be_answered_with_no() -> None:
    assert [_is_known(name) for name in ("acks", "ssl.key.pem", "buffer.memory")] == [True, True, False]


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ("ssl.keystore.key", "ssl.key.pem"),
        ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
        ("ssl.truststore.certificates", "ssl.ca.pem"),
        ("fetch.max.wait.ms", "fetch.wait.max.ms"),
    ],
)
def test_a_name_that_differs_is_translated(java: str, librdkafka: str) -> None:
    reader = SettingsReader({**LEAST, f"signal.consumer.{java}": "x"})
    assert client_settings(reader, "signal.consumer.") == {librdkafka: "x"}
    assert not reader.idle
