"""Kafka client settings: `producer.*` and `signal.consumer.*` with Java's names, translated to librdkafka's names.

Most names are equal. A few differ, and a few have no meaning outside Java. Some values are fixed here, because another
value would break exactly-once delivery. https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from incsnap.config.names import words
from incsnap.config.patterns import split_list
from incsnap.config.reader import SettingsReader

_RENAMED = {
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
#: Settings of the Java clients that librdkafka does not have; `*` at the end of a name stands for any text.
JAVA_ONLY = words(
    """
    key.serializer value.serializer key.deserializer value.deserializer partitioner.class buffer.memory max.block.ms
    interceptor.classes metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partitioner.ignore.keys partitioner.adaptive.partitioning.enable max.poll.records ssl.protocol ssl.provider
    ssl.enabled.protocols ssl.secure.random.implementation ssl.keystore.type ssl.truststore.type
    ssl.truststore.password auto.include.jmx.reporter bootstrap.servers partitioner.availability.timeout.ms
    compression.gzip.level compression.lz4.level compression.zstd.level metadata.max.idle.ms config.providers
    socket.connection.setup.timeout.max.ms transaction.two.phase.commit.enable security.providers
    ssl.trustmanager.algorithm ssl.keymanager.algorithm ssl.engine.factory.class default.api.timeout.ms
    exclude.internal.topics partition.assignment.strategy share.acquire.mode sasl.login.connect.timeout.ms
    sasl.login.read.timeout.ms sasl.login.retry.backoff.ms sasl.login.retry.backoff.max.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope.claim.name
    confluent.* metrics.context.*
    """
)
_JAVA_ONLY_PREFIXES = tuple(name[:-1] for name in JAVA_ONLY if name.endswith("*"))
#: Brokers to which Kafka Connect sends records, whatever the worker's brokers are.
_OWN_BROKERS = ("producer.override.bootstrap.servers", "producer.bootstrap.servers")
#: Java classes that do a login. Without them the login would fail, so they are refused.
_CALLBACKS = words("sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class")
#: Setting of our own among those of a client: region, profile, role and name of its session, each behind a `|`.
AMAZON = "incsnap.amazon"
#: MSK's login by IAM, and the package of its Java classes. Amazon's library for Python takes their place.
_OF_AMAZON, _MODULE = "AWS_MSK_IAM", "software.amazon.msk.auth.iam."
_REGION = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com")
_OPTION = re.compile(r"""(aws\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"';]+))""")
#: Options of MSK's login that are obeyed: profile, role, and name of the role's session.
_OPTIONS = ("awsProfileName", "awsRoleArn", "awsRoleSessionName")
_OURS = {
    "transactional.id": "free to choose: each bucket has its own, so that a restarted writer fences the old one",
    "enable.auto.commit": "free to choose: the job stores its progress in its own offset",
    "group.id": "obeyed: set signal.kafka.groupId",
}
#: The characters that Java's StreamTokenizer reads for a backslash and a letter in quotes.
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.S)
_JAAS = re.compile(r"""(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


def client_settings(reader: SettingsReader, prefix: str) -> dict[str, str]:
    """Return the settings below `prefix` (for example `producer.`) with librdkafka's names.

    Add problems to `reader`.
    """
    given: dict[str, tuple[str, str]] = {}
    # A connector's file of Kafka Connect has producer.override.linger.ms, a worker's file has producer.linger.ms.
    for name, value in reader.prefixed(prefix).items():
        short = name.removeprefix("override.")
        if short == name and short in given:
            continue
        given[short] = (prefix + name, value)
    settings: dict[str, str] = {}
    ignored = []
    for name, (whole, value) in given.items():
        if name in _OURS:
            reader.problem(whole, _OURS[name])
        elif whole in _OWN_BROKERS and split_list(value) != split_list(reader["bootstrap.servers"]):
            reader.problem(whole, "read: Kafka Connect sends records to these brokers. Write them as bootstrap.servers")
        elif name == "acks" and value not in ("all", "-1"):
            reader.problem(whole, "allowed: exactly once needs acks=all")
        elif name == "enable.idempotence" and value.lower() != "true":
            reader.problem(whole, "allowed: exactly once needs enable.idempotence=true")
        elif name == "sasl.jaas.config" and _MODULE in value:
            continue
        elif name == "sasl.jaas.config":
            settings |= _jaas(reader, whole, value)
        elif name == "ssl.truststore.location":
            _store(reader, settings, whole, value, "ssl.ca.location", (".pem", ".crt", ".cer"))
        elif name == "ssl.keystore.location":
            _store(reader, settings, whole, value, "ssl.keystore.location", (".p12", ".pfx", ".pkcs12"))
        elif name == "ssl.endpoint.identification.algorithm":
            settings[name] = value.lower() or "none"
        elif name in _CALLBACKS and value.startswith(_MODULE):
            continue
        elif name in _CALLBACKS:
            reader.problem(whole, "supported: it names a Java class, which does not run here. Log in by SCRAM or TLS")
        elif name in ("sasl.mechanism", "sasl.mechanisms") and value.upper() == _OF_AMAZON:
            settings |= {"sasl.mechanism": "OAUTHBEARER", AMAZON: _of_amazon(reader, given)}
        elif name in JAVA_ONLY or name.startswith(_JAVA_ONLY_PREFIXES):
            ignored.append(whole)
        else:
            settings[_RENAMED.get(name, name)] = value
    reader.idle |= dict.fromkeys(ignored, "It is a setting of the Java client.")
    if ignored:
        reader.warnings.append(f"Settings of the Java client that have no effect here: {', '.join(sorted(ignored))}")
    return settings


def _of_amazon(reader: SettingsReader, given: Mapping[str, tuple[str, str]]) -> str:
    """Return region, profile, role and name of its session for `AMAZON`; "" for what is not given.

    Warn of other options of the login.
    """
    whole, jaas = given.get("sasl.jaas.config", ("", ""))
    options = {name: "".join(texts) for name, *texts in _OPTION.findall(jaas)}
    if others := sorted(options.keys() - set(_OPTIONS)):
        reader.warnings.append(
            f"{whole}: no effect of {', '.join(others)}, which Amazon's library for Python does not have."
            f" {', '.join(_OPTIONS)} are obeyed"
        )
    region = _REGION.search(f"{reader['bootstrap.servers']},{reader['signal.kafka.bootstrap.servers']}")
    return "|".join([region[1] if region else "", *(options.get(name, "") for name in _OPTIONS)])


def _jaas(reader: SettingsReader, whole: str, value: str) -> Mapping[str, str]:
    """Return user name and password of a JAAS login module as librdkafka's settings.

    Add a problem if one is missing.
    """
    login = {which: _unescaped(double or single) for which, double, single in _JAAS.findall(value)}
    if login.keys() != {"username", "password"}:
        reader.problem(whole, 'a login with username="..." and password="..."; other logins: set sasl.* of librdkafka')
    return {f"sasl.{which}": text for which, text in login.items()}


def _unescaped(quoted: str) -> str:
    """Return the text that Java reads for the characters between two quotes."""

    def character(escape: re.Match[str]) -> str:
        letter = escape[1]
        return chr(int(letter, 8)) if "0" <= letter[0] <= "7" else _ESCAPED.get(letter, letter)

    return _ESCAPE.sub(character, quoted)


def _store(
    reader: SettingsReader, settings: dict[str, str], whole: str, path: str, name: str, endings: tuple[str, ...]
) -> None:
    """Set `name` to `path`, or add a problem if `path` does not end with one of `endings` (a Java key store, for
    example)."""
    if path.lower().endswith(endings):
        settings[name] = path
    else:
        kind, how = ("PEM", "-exportcert -rfc -keystore STORE -alias ALIAS -file ca.pem")
        if name != "ssl.ca.location":
            kind, how = ("PKCS#12", "-importkeystore -srckeystore STORE -destkeystore client.p12 -deststoretype PKCS12")
        listed = ", ".join(endings)
        reader.problem(whole, f"a {kind} file ({listed}); convert a Java key store by keytool {how}")
