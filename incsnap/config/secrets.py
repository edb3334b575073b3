"""Secrets in settings: names whose values are secret, and types that hide secrets from logs, plans and commands."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import PlainSerializer, SecretStr, SerializationInfo

#: Parts of names whose values must never be logged. They cover the settings of type PASSWORD of Kafka's clients, those
#: that librdkafka calls sensitive, and the names that Spark and Hadoop redact (`spark.redaction.regex`,
#: `hadoop.security.sensitive-config-keys`). `spark.io.encryption.keySizeBits` and
#: `spark.io.encryption.keygen.algorithm` are no keys, and the JVM needs them early.
_SECRET = (
    r"password|passphrase|passwd|passcode|pwd|(?<![a-z])pass(?![a-z])|secret|jaas|token|credential|user\.info"
    r"|keystore\.pass|(access|account|private|session)[._-]?key|key\.pem|ssl_key|encryption[._-]key(?!size|gen)"
    r"|keystore\.(key|certificate\.chain)|truststore\.certificates|oauthbearer\.config|connection[._-]?string"
    r"|fs\.azure\.(sas|oauth2)\.|fs\.adl\.oauth2\.|fs\.gs\.(encryption|proxy|auth)\."
)
_NAMES = re.compile(_SECRET, re.IGNORECASE)
#: The first line of a private key in PEM.
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
#: What is shown in the place of a secret.
HIDDEN = "**********"
#: A salt in the name of a setting, with what stands in front of it.
_SALT = re.compile(r"([._-]salt[._-]).*", re.IGNORECASE)
#: User and password in front of the host of a URL, or in Oracle's `thin:user/password@`. The password may contain `/`,
#: `:` and `@`. So the last `@` ends it, except that a list may go on with another URL.
_IN_URL = re.compile(r"(//[^\s/:]*:|:thin:[^\s/@]*/)(?:(?![,;]\w[\w+.-]*://)\S)*@", re.IGNORECASE)
#: The name of a parameter whose value is secret. A signature is that of a link to Azure or Amazon.
_PARAMETER = rf"[\w.-]*(?:{_SECRET}|signature|(?<![a-z])sig(?![a-z]))[\w.-]*"
_QUOTED = r"""\{[^{}]*\}|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
#: `?password=...&` of a URL; `Password=...;` of a connection string, which may contain blanks; `"password": "..."`.
_IN_PARAMETERS = (
    re.compile(rf"(?P<name>[?&]{_PARAMETER}=)(?!=)[^&\s]*", re.IGNORECASE),
    re.compile(rf"(?P<name>(?:^|[;,({{\s\"']){_PARAMETER}=)(?!=)(?:{_QUOTED}|[^;&]*)", re.IGNORECASE),
    re.compile(rf"(?P<name>[\"']{_PARAMETER}[\"']\s*:\s*)(?:{_QUOTED}|[^\s,}}]+)", re.IGNORECASE),
)


def is_secret(name: str) -> bool:
    """Return True if the name of a setting says that its value is secret."""
    return _NAMES.search(name) is not None


def is_masked(value: str) -> bool:
    """Return True if `value` is asterisks alone, as Confluent Cloud shows secrets."""
    return set(value.strip()) == {"*"}


def without_password(text: str) -> str:
    """Return `text` with its secrets hidden: in URLs, in parameters, in JSON, and a private key.

    >>> without_password("jdbc:mysql://db/history?user=cdc&password=s3cret&useSSL=true")
    'jdbc:mysql://db/history?user=cdc&password=**********&useSSL=true'
    """
    if _PRIVATE_KEY.search(text):
        return HIDDEN
    text = _IN_URL.sub(rf"\1{HIDDEN}@", text)
    for parameter in _IN_PARAMETERS:
        text = parameter.sub(rf"\g<name>{HIDDEN}", text)
    return text


def without_salt(name: str) -> str:
    """Return the name of a setting as messages may show it.

    A salt is a secret, and the name of a setting may hold one, also a misspelt name.

    >>> without_salt("Column_Mask_Hash_MD5_With_Salt_pepper")
    'Column_Mask_Hash_MD5_With_Salt_*'
    """
    return _SALT.sub(r"\1*", name)


def revealing(info: SerializationInfo) -> bool:
    """Return True if pydantic serializes settings with their secrets, as `Settings.to_json` asks for.

    The serializers of `Secret` and `Properties` call this.
    """
    return bool(info.context and info.context.get("reveal"))


def _shown(value: SecretStr, info: SerializationInfo) -> str:
    return value.get_secret_value() if revealing(info) else str(value)


#: A text that `repr` hides and that only a revealing dump shows.
Secret = Annotated[SecretStr, PlainSerializer(_shown)]


def _shown_properties(values: dict[str, str], info: SerializationInfo) -> dict[str, str]:
    if revealing(info):
        return values
    return {name: HIDDEN if is_secret(name) else without_password(value) for name, value in values.items()}


#: Settings that are passed to a client unchanged. Only a revealing dump shows values whose names say that they are
#: secret.
Properties = Annotated[dict[str, str], PlainSerializer(_shown_properties)]
