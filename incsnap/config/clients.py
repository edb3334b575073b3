"""``producer.*`` and ``signal.consumer.*``: a Java client's settings, said in librdkafka's words.

Most names are the same. A few differ, a few have no meaning outside Java, and some must be ours, or exactly-once
would end.
https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from incsnap.config.names import words
from incsnap.config.reading import SettingsReader

_RENAMED = {
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}
_JAVA_ONLY = words(
    """
    key.serializer value.serializer key.deserializer value.deserializer partitioner.class buffer.memory max.block.ms
    interceptor.classes metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partitioner.ignore.keys partitioner.adaptive.partitioning.enable max.poll.records ssl.protocol ssl.provider
    ssl.enabled.protocols ssl.secure.random.implementation ssl.keystore.type ssl.truststore.type
    ssl.truststore.password auto.include.jmx.reporter bootstrap.servers
    """
)
#: Java classes that a login hangs on.
_CALLBACKS = words("sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class")
_OF_AMAZON = "AWS_MSK_IAM"
_OURS = {
    "transactional.id": "free to choose: it names the bucket, so that a restarted writer fences the old one",
    "enable.auto.commit": "free to choose: progress is kept in the job's own offset",
    "group.id": "read: the name is signal.kafka.groupId",
}
#: What Java's StreamTokenizer makes of the letters behind a backslash in quotes.
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.S)
_JAAS = re.compile(r"""(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


def client_settings(reading: SettingsReader, prefix: str) -> dict[str, str]:
    """The settings below ``prefix`` (``producer.``), as librdkafka takes them; problems go to ``reading``."""
    given: dict[str, tuple[str, str]] = {}
    # Kafka Connect writes producer.override.linger.ms in a connector's file, a worker's file producer.linger.ms.
    for name, value in reading.prefixed(prefix).items():
        short = name.removeprefix("override.")
        if short == name and short in given:
            continue
        given[short] = (prefix + name, value)
    settings: dict[str, str] = {}
    ignored = []
    for name, (whole, value) in given.items():
        if name in _OURS:
            reading.problem(whole, _OURS[name])
        elif name == "acks" and value not in ("all", "-1"):
            reading.problem(whole, "possible: exactly once needs acks=all")
        elif name == "enable.idempotence" and value.lower() != "true":
            reading.problem(whole, "possible: exactly once needs enable.idempotence=true")
        elif name == "sasl.jaas.config":
            settings |= _jaas(reading, whole, value)
        elif name == "ssl.truststore.location":
            _store(reading, settings, whole, value, "ssl.ca.location", (".pem", ".crt", ".cer"))
        elif name == "ssl.keystore.location":
            _store(reading, settings, whole, value, "ssl.keystore.location", (".p12", ".pfx", ".pkcs12"))
        elif name == "ssl.endpoint.identification.algorithm":
            settings[name] = value.lower() or "none"
        elif name in _CALLBACKS:
            reading.problem(whole, "possible: it names a Java class, which does not run here; log in by SCRAM or TLS")
        elif name == "sasl.mechanism" and value.upper() == _OF_AMAZON:
            reading.problem(whole, "possible: librdkafka does not know it; take SCRAM-SHA-512, or TLS")
        elif name in _JAVA_ONLY:
            ignored.append(whole)
        else:
            settings[_RENAMED.get(name, name)] = value
    reading.idle |= dict.fromkeys(ignored, "")
    if ignored:
        reading.warnings.append(f"Settings of the Java client that have no effect here: {', '.join(sorted(ignored))}")
    return settings


def _jaas(reading: SettingsReader, whole: str, value: str) -> Mapping[str, str]:
    """Return name and password of a login module, as librdkafka's settings. A problem where there are none."""
    login = {which: _unescaped(double or single) for which, double, single in _JAAS.findall(value)}
    if login.keys() != {"username", "password"}:
        reading.problem(whole, 'a login with username="..." and password="..."; other logins: use sasl.* of librdkafka')
    return {f"sasl.{which}": text for which, text in login.items()}


def _unescaped(quoted: str) -> str:
    """Return the text that Java reads between quotes."""

    def character(escape: re.Match[str]) -> str:
        letter = escape[1]
        return chr(int(letter, 8)) if "0" <= letter[0] <= "7" else _ESCAPED.get(letter, letter)

    return _ESCAPE.sub(character, quoted)


def _store(
    reading: SettingsReader, settings: dict[str, str], whole: str, path: str, name: str, endings: tuple[str, ...]
) -> None:
    if path.lower().endswith(endings):
        settings[name] = path
    else:
        kind, how = ("PEM", "-exportcert -rfc -keystore STORE -alias ALIAS -file ca.pem")
        if name != "ssl.ca.location":
            kind, how = ("PKCS#12", "-importkeystore -srckeystore STORE -destkeystore client.p12 -deststoretype PKCS12")
        listed = ", ".join(endings)
        reading.problem(whole, f"a {kind} file ({listed}); a Java key store is converted by keytool {how}")
