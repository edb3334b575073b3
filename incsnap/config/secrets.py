"""Secrets in settings: names whose values are secret, and types that hide secrets from logs, plans and commands."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import PlainSerializer, SecretStr, SerializationInfo

#: Parts of names whose values must never be logged. They cover the settings of type PASSWORD of Kafka's clients, those
#: that librdkafka calls sensitive, and the names that Spark and Hadoop redact (`spark.redaction.regex`,
#: `hadoop.security.sensitive-config-keys`). `spark.io.encryption.keySizeBits` and
#: `spark.io.encryption.keygen.algorithm` are no keys, and the JVM needs them early.
_NAMES = re.compile(
    r"password|passphrase|secret|jaas|token|credential|user\.info|keystore\.pass"
    r"|(access|account|private|session)[._-]?key|key\.pem|ssl_key|encryption[._-]key(?!size|gen)"
    r"|keystore\.(key|certificate\.chain)|truststore\.certificates|oauthbearer\.config"
    r"|fs\.azure\.(sas|oauth2)\.|fs\.adl\.oauth2\.|fs\.gs\.(encryption|proxy|auth)\.",
    re.IGNORECASE,
)
#: The first line of a private key in PEM.
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
#: What is shown in the place of a secret.
HIDDEN = "**********"
#: A salt in the name of a setting, with what stands in front of it.
_SALT = re.compile(r"([._-]salt[._-]).*", re.IGNORECASE)
#: User and password in front of the host of a URL. The password may contain `/` and `:`.
_IN_URL = re.compile(r"(//[^\s/:@]*:)[^\s@]*@")


def is_secret(name: str) -> bool:
    """Return True if the name of a setting says that its value is secret."""
    return _NAMES.search(name) is not None


def is_masked(value: str) -> bool:
    """Return True if `value` is asterisks alone, as Confluent Cloud shows secrets."""
    return set(value.strip()) == {"*"}


def holds_secret(text: str) -> bool:
    """Return True if `text` names a secret, as a command of curl or JSON does, or if it is a private key."""
    return is_secret(text) or _PRIVATE_KEY.search(text) is not None


def without_password(text: str) -> str:
    """Return `text` with the passwords in URLs such as `http://user:password@host` hidden."""
    return _IN_URL.sub(rf"\1{HIDDEN}@", text)


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
    return {name: HIDDEN if is_secret(name) else value for name, value in values.items()}


#: Settings that are passed to a client unchanged. Only a revealing dump shows values whose names say that they are
#: secret.
Properties = Annotated[dict[str, str], PlainSerializer(_shown_properties)]
