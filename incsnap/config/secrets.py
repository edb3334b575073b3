"""What nobody may see in a log, a plan or a command line: by its setting's name, and as a type of settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainSerializer, SecretStr, SerializationInfo

#: Parts of names whose values nobody may see in a log.
_NAMES = ("password", "secret", "jaas", "token", "key.pem", "credential", "user.info", "access.key")


def is_secret(name: str) -> bool:
    return any(part in name.lower() for part in _NAMES)


def revealing(info: SerializationInfo) -> bool:
    """Is this the dump that shows secrets, for Spark's workers?"""
    return bool(info.context and info.context.get("reveal"))


def _shown(value: SecretStr, info: SerializationInfo) -> str:
    return value.get_secret_value() if revealing(info) else str(value)


#: Shown by no ``repr``, and by a dump only where that reveals.
Secret = Annotated[SecretStr, PlainSerializer(_shown)]
