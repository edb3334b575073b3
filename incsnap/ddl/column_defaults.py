"""The DEFAULTs of columns in MySQL's own form, as far as the text of a statement tells them."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

from incsnap.ddl.column_types import DeclaredType

#: MySQL's DECIMAL has at most 65 digits.
_DIGITS = Context(prec=65)
_DATE, _FRACTION = r"\d{4}-\d\d-\d\d", r"(?:\.(\d+))?"
#: Dates and times as MySQL prints them, without a time zone. The group has the digits of the fraction.
_CLOCKS = {
    "date": re.compile(f"{_DATE}()"),
    "time": re.compile(rf"-?(?:\d\d|[1-8]\d\d):[0-5]\d:[0-5]\d{_FRACTION}"),
    "datetime": re.compile(rf"{_DATE} \d\d:\d\d:\d\d{_FRACTION}"),
    "timestamp": re.compile(rf"{_DATE} \d\d:\d\d:\d\d{_FRACTION}"),
}
_NUMBERS = frozenset(
    ("tinyint", "smallint", "mediumint", "int", "bigint", "serial", "decimal", "float", "double", "year")
)


def default_text(value: str | int | bytes | None, kind: DeclaredType, charset: str) -> str | None:
    r"""Return the DEFAULT of a column as a text in MySQL's own form. `kind` is the column's type, `charset` its
    character set.

    The text of a byte string, and of a BIT with more than one bit, has a character for each byte. Return None if
    `value` is None, if its characters depend on the table's character set, or if a time depends on a time zone. Return
    None too if MySQL's own form is not certain (a year of two digits, a time without seconds).

    >>> default_text(b"\x05", DeclaredType("int"), ""), default_text(b"\x05", DeclaredType("bit", 8), "")
    ('5', '\x05')
    >>> default_text("y,x", DeclaredType("set", values=("x", "y")), "")
    'x,y'
    """
    if value is None:
        return None
    if kind.kind == "bit":
        return _bits(value, kind.length or 1)
    if isinstance(value, int):
        value = str(value)
    if kind.kind in _NUMBERS:
        text = str(int.from_bytes(value, "big")) if isinstance(value, bytes) else value
        return _number(text, kind)
    if charset == "binary" and kind.kind in ("char", "varchar"):
        octets = value.encode("utf-8", "replace") if isinstance(value, str) else value
        padded = octets.ljust(kind.length or 1, b"\0") if kind.kind == "char" else octets
        return padded.decode("latin-1")
    if isinstance(value, bytes):
        value = value.decode("latin-1")
        if not (value.isascii() and (value.isprintable() or not value)):
            return None
    if kind.kind in _CLOCKS:
        return _clock(value, kind)
    if kind.kind in ("enum", "set"):
        return _members(value, kind)
    return value.rstrip(" ") if kind.kind == "char" else value


def _number(text: str, kind: DeclaredType) -> str | None:
    """Return the DEFAULT of a number as MySQL rounds it; None if that is not certain."""
    if kind.kind in ("float", "double"):
        return text
    if kind.kind == "year":
        return text if re.fullmatch(r"\d{4}", text) else None
    try:
        unit = Decimal(1).scaleb(-kind.scale if kind.kind == "decimal" else 0)
        rounded = [Decimal(text).quantize(unit, how, _DIGITS) for how in (ROUND_HALF_UP, ROUND_HALF_EVEN)]
    except ArithmeticError:
        return None
    # MySQL rounds a half up in an exact number, and to the even number in 2.5e0.
    if rounded[0] != rounded[1] and "E" in text.upper():
        return None
    return f"{rounded[0] or rounded[0].copy_abs():f}"


def _clock(text: str, kind: DeclaredType) -> str | None:
    """Return the DEFAULT of a date or time, with all digits of its fraction; None if MySQL would change the value."""
    match = _CLOCKS[kind.kind].fullmatch(text)
    if match is None:
        return None
    digits, most = match[1] or "", kind.length or 0
    if kind.kind == "date" or len(digits) == most:
        return text
    return None if len(digits) > most else f"{text.partition('.')[0]}.{digits:0<{most}}"


def _members(text: str, kind: DeclaredType) -> str | None:
    """Return the DEFAULT of an ENUM or SET in the spelling and the order of its members; None if it has another one."""
    members = {member.rstrip(" ").casefold(): member.rstrip(" ") for member in kind.values}
    named = [each.rstrip(" ").casefold() for each in (text.split(",") if kind.kind == "set" else [text])]
    if kind.kind == "set" and not text:
        return ""
    if len(members) < len(kind.values) or not members.keys() >= set(named):
        return None
    return ",".join(member for key, member in members.items() if key in named)


def _bits(value: str | int | bytes, length: int) -> str | None:
    """Return the DEFAULT of a BIT: digits of one bit, otherwise a character for each byte.

    MySQL takes the bytes of a string: '5' is x'35' and not 5.
    """
    octets = value.encode() if isinstance(value, str) else value
    number = octets if isinstance(octets, int) else int.from_bytes(octets, "big")
    if length == 1 or not 0 <= number < 1 << length:
        return str(number) if number in (0, 1) else None
    return number.to_bytes((length + 7) // 8, "big").decode("latin-1")
