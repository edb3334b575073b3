"""The conversions of a column's type that leave every value as it was in a record.

A consumer that has a row's record from before such a conversion has the row's present value. Of every other conversion
the server alone knows the result: it cuts, rounds, pads, or replaces by NULL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TYPE = re.compile(r"(\w+)\s*(?:\((.*)\))?\s*(.*)", re.DOTALL)
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
#: Integers with their bits.
_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
#: Texts and byte strings of any length, with the most bytes of a value.
_TEXTS = {"tinytext": 255, "text": 65_535, "mediumtext": 16_777_215, "longtext": 4_294_967_295}
_BLOBS = {"tinyblob": 255, "blob": 65_535, "mediumblob": 16_777_215, "longblob": 4_294_967_295}
#: Character sets all of whose characters utf8mb4 has, with the same bytes.
_PARTS_OF_UTF8MB4 = ("ascii", "utf8mb3")
#: A VARCHAR may have as many bytes as a row.
_LONGEST_VARCHAR = 65_535


@dataclass(frozen=True, slots=True)
class _Type:
    """A type, taken apart."""

    name: str  #: in lower case, for example `int`
    numbers: tuple[int, ...]  #: numbers in brackets
    literals: tuple[str, ...]  #: of an ENUM or SET
    unsigned: bool  #: whether the type has no negative values

    @classmethod
    def of(cls, text: str) -> _Type:
        match = _TYPE.fullmatch(text.strip())
        name, arguments, rest = match.groups(default="") if match is not None else (text, "", "")
        name = name.lower()
        if name in ("enum", "set"):
            return cls(name, (), tuple(each[1] for each in _LITERAL.finditer(arguments)), unsigned=False)
        numbers = tuple(int(each) for each in arguments.split(",") if each.strip().isdecimal())
        is_flag = name == "tinyint" and numbers == (1,)
        if name in _INTEGERS and not is_flag:
            numbers = ()  # a display width
        return cls(name, numbers, (), unsigned="unsigned" in rest.lower().split())


def keeps_values(before: str, after: str, charset_before: str = "", charset_after: str = "") -> bool:
    """Return True if every value of the column is in a record what it was before its type was changed.

    `before` and `after` are types as information_schema prints them in COLUMN_TYPE. The character sets are those of a
    text, "" for other types.

    >>> keeps_values("int", "bigint"), keeps_values("int", "int unsigned"), keeps_values("decimal(6,2)", "decimal(6,3)")
    (True, False, False)
    """
    if charset_before != charset_after and (charset_after != "utf8mb4" or charset_before not in _PARTS_OF_UTF8MB4):
        return False
    old, new = _Type.of(before), _Type.of(after)
    return old == new or _widens(old, new)


def keeps_expressions(before: str, after: str) -> bool:
    """Return True if an expression over the column has the values that it had before its type was changed.

    The character set is the same. An expression may show the number of an ENUM's member.

    >>> keeps_expressions("enum('a','b')", "enum('a','b','c')"), keeps_expressions("enum('a','b')", "enum('b','a')")
    (True, False)
    """
    old, new = _Type.of(before), _Type.of(after)
    if old.name != new.name or old.name not in ("varchar", "enum", "set"):
        return old == new
    return old.numbers <= new.numbers and new.literals[: len(old.literals)] == old.literals


def _widens(old: _Type, new: _Type) -> bool:
    """Return True if `new` has all values of `old`, and a record shows them in the same form."""
    names = (old.name, new.name)
    if old.name in _INTEGERS and new.name in _INTEGERS:
        if old.numbers != new.numbers:
            return False  # one of them is TINYINT(1), which a converter may write as a boolean
        if (new.name, new.unsigned) == ("bigint", True):
            return old.name == "bigint" and old.unsigned  # bigint.unsigned.handling.mode may write it as bytes
        wider = _INTEGERS[new.name] - _INTEGERS[old.name]
        return wider >= 0 if old.unsigned == new.unsigned else wider > 0 and old.unsigned
    if names == ("decimal", "decimal"):
        # Another scale changes the bytes of a value, and not only its digits.
        same_scale = old.numbers[1:] == new.numbers[1:] and old.unsigned == new.unsigned
        return same_scale and old.numbers[:1] <= new.numbers[:1]
    if names == ("enum", "enum"):
        return set(old.literals) <= set(new.literals)
    if names == ("set", "set"):
        # A value lists its members in the order of the definition.
        return [each for each in new.literals if each in set(old.literals)] == list(old.literals)
    return _longer(old, new, ("char", "varchar"), _TEXTS) or _longer(old, new, ("", "varbinary"), _BLOBS)


def _longer(old: _Type, new: _Type, short: tuple[str, str], long: dict[str, int]) -> bool:
    """Return True if `new` is a text or byte string that is as long as `old` or longer.

    `short` are the names of the types of fixed and of variable length, `long` those of any length.
    """
    fixed, variable = short
    if old.name in long and new.name in long:
        return long[old.name] <= long[new.name]
    if old.name == variable and new.name in long:
        return long[new.name] >= _LONGEST_VARCHAR
    # BINARY(n) is filled up with zero bytes, so a longer one has other values. CHAR loses its blanks in both forms.
    return (old.name, new.name) in ((fixed, fixed), (fixed, variable), (variable, variable)) and (
        old.numbers <= new.numbers
    )
