"""Names that Avro takes: what field.name.adjustment.mode and schema.name.adjustment.mode make of a name.

Avro knows letters, digits and ``_``. Mode ``avro`` writes ``_`` for all else, so two names may become one;
``avro_unicode`` writes ``_u`` and the number of the character, of ``_`` itself too, so that they cannot. Java counts in
UTF-16 units: a character outside the basic plane is replaced twice.
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
    """The name of a schema (``topic.Envelope``): dots divide namespaces and stay."""
    return _adjusted(name, mode, frozenset("."))


def adjust_field(name: str, mode: str) -> str:
    """The name of a field, where a dot is a character like another."""
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
    """Names begin with a letter. Mode ``avro`` keeps a digit behind its ``_``, as Debezium does for old consumers."""
    if letter in _KEPT[mode]:
        return letter
    kept = letter if mode == "avro" and letter.isdecimal() and ord(letter) <= 0xFFFF else ""
    return _replaced(letter, mode) + kept


def _replaced(letter: str, mode: str) -> str:
    return "_" * len(_units(letter)) if mode == "avro" else unicode_escape(letter)


def unicode_escape(letter: str) -> str:
    """``_u`` and the number of each of the letter's UTF-16 units."""
    units = _units(letter)
    # "00" before a number of one or two digits, nothing before three: the length is not always four.
    return "".join(f"_u00{unit:x}" if unit <= 0xFF else f"_u{unit:x}" for unit in units)


def _units(letter: str) -> list[int]:
    return list(np.frombuffer(letter.encode("utf-16-le", "surrogatepass"), "<u2").tolist())
