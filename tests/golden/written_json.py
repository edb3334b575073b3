"""JSON that is parsed and written back unchanged: numbers keep their text, and objects keep their order.

`dump` writes as Connect's JsonConverter (Jackson) does. If `dump(parse(text))` returns two texts unchanged, and their
parsed forms are equal, then the texts are the same bytes. So golden files can hold objects and still test bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

#: Longer strings are kept as their SHA-256 and length.
_LONGEST = 3000


class Number(str):
    """A number with a fraction or an exponent, as its text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Number({self!s})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and str(self) == str(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("Number", str(self)))


def parse(text: str | bytes) -> Any:
    return json.loads(text, parse_float=Number, parse_constant=Number)


def dump(value: Any) -> str:
    """Return the value as compact JSON."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(name)}:{dump(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return json.dumps(value)


def shortened(value: Any) -> Any:
    """Return the value with a digest in place of each long string."""
    if isinstance(value, Number):
        return value
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"SHA-256 {hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()}, {len(value)} characters"
    if isinstance(value, dict):
        return {name: shortened(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shortened(each) for each in value]
    return value


# Jackson writes what is outside the basic plane as two escapes, in the generator that makes bytes.
_SPECIAL = re.compile(r'["\\\x00-\x1f\U00010000-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def _quoted(text: str) -> str:
    return '"' + _SPECIAL.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    text = match[0]
    if text in _SHORT:
        return _SHORT[text]
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[i : i + 2].hex().upper()}" for i in range(0, len(units), 2))
