"""The options of a converter with a registry (`value.converter.*`): some go to the registry's client, some are handled
here.

The names are those of Confluent's Java converter. The Python client shares most of them.
https://docs.confluent.io/platform/current/schema-registry/connect.html#configuration-options
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from incsnap.config.names import words
from incsnap.errors import ConfigError

_PREFIX = "schema.registry."
_NUMBERS = words("timeout max.retries retries.wait.ms retries.max.wait.ms")
#: Options that the client takes unchanged, besides all bearer.auth.* options.
_SAME = words("basic.auth.user.info ssl.ca.location ssl.certificate.location ssl.key.location ssl.key.password proxy")
#: Java's names of files, with the client's names. Only PEM: the client reads no Java key stores.
_FILES = {"ssl.truststore.location": "ssl.ca.location", "ssl.keystore.location": "ssl.certificate.location"}
#: Options with the only value that is supported. Another value would change schemas or subjects.
_FIXED = {
    "connect.meta.data": "true",
    "scrub.invalid.names": "false",
    "key.subject.name.strategy": "TopicNameStrategy",
    "value.subject.name.strategy": "TopicNameStrategy",
}
#: Options that make no difference to our records.
_IDLE = words(
    """
    schemas.cache.config schemas.cache.size max.schemas.per.subject enhanced.avro.schema.support
    latest.compatibility.strict id.compatibility.strict avro.remove.java.properties ssl.truststore.password
    ssl.truststore.type ssl.keystore.type ssl.endpoint.identification.algorithm ssl.protocol schemas.enable
    ignore.default.for.nullables
    """
)
#: Our defaults. Without a timeout the client would wait for ever; a registry answers in milliseconds.
_DEFAULTS: dict[str, Any] = {"timeout": 10, "max.retries": 3, "retries.wait.ms": 200, "retries.max.wait.ms": 2000}


@dataclass(frozen=True, slots=True)
class RegistryClientSettings:
    """The options of one converter with a registry."""

    client: Mapping[str, Any] = field(repr=False)  #: settings of the Python client, with secrets
    auto_register: bool = True  #: auto.register.schemas
    latest: bool = False  #: use.latest.version
    normalize: bool = False  #: normalize.schemas
    idle: tuple[str, ...] = ()  #: options without effect here
    unknown: tuple[str, ...] = ()  #: options that no such converter has, as far as is known


def client_settings(url: str, given: Mapping[str, str]) -> RegistryClientSettings:
    """Return the options in `given`. Raise ConfigError for a value that is not supported."""
    client: dict[str, Any] = {"url": url, **_DEFAULTS}
    flags = {"auto.register.schemas": True, "use.latest.version": False, "normalize.schemas": False}
    idle: list[str] = []
    unknown: list[str] = []
    for whole, value in given.items():
        name = whole.removeprefix(_PREFIX)
        if name in flags:
            flags[name] = _flag(name, value)
        elif name in _NUMBERS:
            client[name] = _number(name, value)
        elif name in _SAME or name.startswith("bearer.auth."):
            client[name] = value
        elif name in _FILES:
            client[_FILES[name]] = _pem(name, value)
        elif name == "ssl.keystore.password":
            client.setdefault("ssl.key.password", value)
        elif name == "basic.auth.credentials.source":
            _source_of_password(name, value)
        elif name in _FIXED:
            _fixed(name, value)
        else:
            (idle if name in _IDLE else unknown).append(whole)
    return RegistryClientSettings(
        client,
        flags["auto.register.schemas"],
        flags["use.latest.version"],
        flags["normalize.schemas"],
        tuple(idle),
        tuple(unknown),
    )


def _flag(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ConfigError(f"{name}={value} of the converter is neither true nor false")
    return value.lower() == "true"


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ConfigError(f"{name}={value} of the converter is no whole number") from None


def _pem(name: str, path: str) -> str:
    if path.lower().endswith((".jks", ".p12", ".pfx", ".pkcs12")):
        raise ConfigError(
            f"{name}={path} of the converter is a Java key store, which cannot be read",
            "Give a PEM file: ssl.ca.location, ssl.certificate.location and ssl.key.location.",
        )
    return path


def _source_of_password(name: str, value: str) -> None:
    if value not in ("URL", "USER_INFO"):
        raise ConfigError(
            f"{name}={value} of the converter is not known",
            "Set basic.auth.credentials.source=USER_INFO and basic.auth.user.info=user:password.",
        )


def _fixed(name: str, value: str) -> None:
    if value.rpartition(".")[2].lower() != _FIXED[name].lower():
        raise ConfigError(
            f"{name}={value} of the converter is not known; {_FIXED[name]} is",
            f"Remove {name}, then records are written as the converter does by default.",
        )
