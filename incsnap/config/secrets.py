"""What nobody may see in a log, a plan or a command line: by its setting's name, and as a type of settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainSerializer, SecretStr, SerializationInfo

#: Parts of names whose values nobody may see in a log.
_NAMES = ("password", "secret", "jaas", "token", "key.pem", "credential", "user.info", "access.key")
_HIDDEN = "**********"


def is_secret(name: str) -> bool:
    return any(part in name.lower() for part in _NAMES)


def revealing(info: SerializationInfo) -> bool:
    """Is this the dump that shows secrets, for Spark's workers?"""
    return bool(info.context and info.context.get("reveal"))


def _shown(value: SecretStr, info: SerializationInfo) -> str:
    return value.get_secret_value() if revealing(info) else str(value)


#: Shown by no ``repr``, and by a dump only where that reveals.
Secret = Annotated[SecretStr, PlainSerializer(_shown)]


def _shown_properties(values: dict[str, str], info: SerializationInfo) -> dict[str, str]:
    if revealing(info):
        return values
    return {name: _HIDDEN if is_secret(name) else value for name, value in values.items()}


#: What is handed on to a client as it is given: those whose names are of secrets are shown where a dump reveals.
Properties = Annotated[dict[str, str], PlainSerializer(_shown_properties)]
