"""Names for Avro: how field.name.adjustment.mode and schema.name.adjustment.mode change the names of fields and
schemas.

Avro allows letters, digits and `_`. The mode `avro` writes `_` for all other characters, so two names may become one.
The mode `avro_unicode` writes `_u` and the number of the character, also for `_` itself, so two names stay different.
Java counts in UTF-16 units, so a character outside the basic plane is replaced twice.
https://avro.apache.org/docs/1.12.0/specification/#names
"""

from __future__ import annotations

import string
from functools import lru_cache

import numpy as np

_LETTERS = frozenset(string.ascii_letters)
_DIGITS = frozenset(string.digits)
_KEPT = {"avro": _LETTERS | {"_"}, "avro_unicode": _LETTERS}


def adjust(name: str, mode: str) -> str:
    """Return the schema name `name` (such as `topic.Envelope`) as `mode` writes it. Dots divide namespaces and stay."""
    return _adjusted(name, mode, frozenset("."))


def adjust_field(name: str, mode: str) -> str:
    """Return the field name `name` as `mode` writes it. A dot is replaced like any other character."""
    return _adjusted(name, mode, frozenset())


@lru_cache(maxsize=4096)
def _adjusted(name: str, mode: str, dots: frozenset[str]) -> str:
    if mode == "none" or not name:
        return name
    kept = _KEPT[mode]
    return _first(name[0], mode) + "".join(
        letter if letter in kept | _DIGITS | dots else _replaced(letter, mode) for letter in name[1:]
    )


def _first(letter: str, mode: str) -> str:
    """Return the name's first character, replaced if it is no letter.

    Mode `avro` keeps a digit behind its `_`, as Debezium does.
    """
    if letter in _KEPT[mode]:
        return letter
    kept = letter if mode == "avro" and letter.isdecimal() and ord(letter) <= 0xFFFF else ""
    return _replaced(letter, mode) + kept


def _replaced(letter: str, mode: str) -> str:
    return "_" * len(_units(letter)) if mode == "avro" else unicode_escape(letter)


def unicode_escape(letter: str) -> str:
    """Return `_u` and the hexadecimal number for each UTF-16 unit of the letter."""
    units = _units(letter)
    # As Debezium: "00" before a number of one or two digits, nothing before three digits, so the length varies.
    return "".join(f"_u00{unit:x}" if unit <= 0xFF else f"_u{unit:x}" for unit in units)


def _units(letter: str) -> list[int]:
    return list(np.frombuffer(letter.encode("utf-16-le", "surrogatepass"), "<u2").tolist())
