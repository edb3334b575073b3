"""Names in proto files: which are allowed, and how `scrub.invalid.names` of Confluent's ProtobufConverter changes them.

https://protobuf.dev/reference/protobuf/proto3-spec/#identifiers
"""

from __future__ import annotations

import re

from incsnap.errors import ConfigError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
#: Characters that become `_` alone. Java's URLEncoder leaves all of them as one character.
_SINGLE = frozenset(b"_-.* ")


def scrubbed(name: str) -> str:
    """Return `name` as the converter scrubs it.

    Other characters become `_` and the hexadecimal digits of their UTF-8 bytes. An `x` goes before a digit or `_` at
    the start.

    >>> scrubbed("e-mail"), scrubbed("größe"), scrubbed("2nd")
    ('e_mail', 'gr_C3_B6_C3_9Fe', 'x2nd')
    """
    parts = [
        chr(byte) if byte in _LETTERS else "_" if byte in _SINGLE else f"_{byte:02X}"
        for byte in name.encode("utf-8", "replace")
    ]
    text = "".join(parts)
    # A name that begins with an escape had a `%` there, so it gets no `x`.
    return f"x{text}" if name[:1].isascii() and (name[:1].isdigit() or name[:1] == "_") else text


def check_name(name: str, whole: str, setting: str) -> None:
    """Raise ConfigError if `name`, a part of `whole`, is no name in proto files. `setting` changes such names."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{whole!r} is no name that Protobuf allows: letters, digits and _, not beginning with a digit",
            f"Set {setting}=avro (every other character becomes _), or scrub.invalid.names=true of the converter.",
        )
