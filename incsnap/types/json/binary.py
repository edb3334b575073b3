"""Binary JSON as MySQL stores it, decoded to the text that the server prints for it, but without blanks between tokens.

The documents are decoded one by one in Python, because a tree cannot be gathered by columns. A value is a type byte and
its content. The content of a container is a table of keys and values with their offsets from the container's begin.
Short literals stand in the table itself. Small containers use two-byte counts and offsets, large ones four bytes.
https://dev.mysql.com/doc/dev/mysql-server/latest/ (json_binary.h has the grammar)

A valid document uses no byte twice. So the decoder counts the bytes of all table entries, keys and strings that it
reads. It refuses a document when they are more than the document has. This ends every walk over damaged offsets that
point back or overlap. The depth is limited to MySQL's own 100.
"""

from __future__ import annotations

import base64
import struct
from decimal import Decimal
from json.encoder import encode_basestring as quoted
from typing import Any

from incsnap.columns.packed_decimal import GROUP_BYTES, groups

_MAX_DEPTH = 101
_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = 0, 1, 2, 3, 4
_DOUBLE, _STRING, _OPAQUE = 0x0B, 0x0C, 0x0F
_NUMBERS = {5: struct.Struct("<h"), 6: struct.Struct("<H"), 7: struct.Struct("<i"), 8: struct.Struct("<I"),
            9: struct.Struct("<q"), 10: struct.Struct("<Q")}  # fmt: skip
_FLOAT64 = struct.Struct("<d")
_INT64 = struct.Struct("<q")
_LITERALS = {0: "null", 1: "true", 2: "false"}
#: MySQL prints a double with an exponent if the point would stand outside the digits by more places than this.
_MAX_POINT_SHIFT = 15
_BASE64_LINE = 76
_DECIMAL, _DATE, _TIME, _DATETIME, _TIMESTAMP = 246, 10, 11, 12, 7


def json_text(document: bytes) -> str:
    """Return the document as compact JSON text. Raise ValueError if it is damaged.

    An empty document is `null`: the server writes it if a NOT NULL column was added without a value.
    """
    text: str = _read(_Document, document)
    return text


#: A node of a JSON document: an array as a list, an object as a dict, every other value as its JSON text.
Node = str | list["Node"] | dict[str, "Node"]


def json_tree(document: bytes) -> Node:
    """Return the document as a tree that can be changed; `tree_text` makes its text.

    Raise ValueError if it is damaged.
    """
    node: Node = _read(_Tree, document)
    return node


def _read(form: type[_Document], document: bytes) -> Any:
    """Return the document in the form that the class makes of it. Raise ValueError if it is damaged."""
    if not document:
        return "null"
    try:
        return form(document).value(document[0], 1, 0)
    except (IndexError, struct.error, UnicodeDecodeError, OverflowError) as error:
        raise ValueError(f"damaged JSON: {error}") from None


def tree_text(node: Node, depth: int = 0) -> str:
    """Return a tree as compact JSON text. Keys are sorted as the server sorts them: shorter ones first, then by bytes.

    Raise ValueError if the tree is deeper than MySQL allows.
    """
    if isinstance(node, str):
        return node
    if depth == _MAX_DEPTH:
        raise ValueError(f"damaged JSON: deeper than {_MAX_DEPTH - 1}")
    if isinstance(node, list):
        return f"[{','.join(tree_text(value, depth + 1) for value in node)}]"
    coded = sorted((len(key.encode("utf-8")), key.encode("utf-8"), key) for key in node)
    return f"{{{','.join(f'{quoted(key)}:{tree_text(node[key], depth + 1)}' for *_, key in coded)}}}"


def double_text(number: float) -> str:
    """Return a double as the server prints it in JSON: the fewest digits that give the same double (`1e20`, `1.0`,
    `-0.0`).

    Raise ValueError for NaN and infinity.
    """
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("JSON has no infinity and no NaN")
    text = "".join(map(str, digits)).rstrip("0")
    point = len(digits) + exponent
    minus = "-" if sign else ""
    if not text:
        return minus + "0.0"
    inside = 0 < point < len(text)
    if not inside and not -_MAX_POINT_SHIFT < point <= _MAX_POINT_SHIFT:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        return f"{minus}{text[0]}{fraction}e{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    if inside:
        return f"{minus}{text[:point]}.{text[point:]}"
    return f"{minus}{text}{'0' * (point - len(text))}.0"


def decimal_text(raw: bytes, precision: int, scale: int) -> str:
    """Return one packed decimal (see `columns.packed_decimal`) as the server prints it.

    Raise ValueError if it is damaged.
    """
    positive = raw[0] & 0x80
    plain = bytearray(raw if positive else (byte ^ 0xFF for byte in raw))
    plain[0] ^= 0x80
    text, at = "", 0
    for digits in groups(precision, scale):
        width = GROUP_BYTES[digits]
        group = int.from_bytes(plain[at : at + width], "big")
        if at + width > len(plain) or group >= 10**digits:
            raise ValueError("damaged JSON: not a packed decimal")
        text += f"{group:0{digits}d}"
        at += width
    whole = text[: len(text) - scale].lstrip("0") or "0"
    return ("" if positive else "-") + whole + (f".{text[len(text) - scale :]}" if scale else "")


class _Document:
    """A document that is being read. `budget`: how many of its bytes are left to use."""

    __slots__ = ("budget", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.budget = len(data)

    def value(self, type_: int, at: int, depth: int) -> Any:
        """Return the text of the value of this type that begins at byte `at`. Raise ValueError if it is damaged."""
        if type_ <= _LARGE_ARRAY:
            return self._container(type_, at, depth + 1)
        if type_ == _STRING:
            return quoted(self._sized(at).decode("utf-8"))
        if type_ == _LITERAL:
            return self._literal(self.data[at])
        if type_ in _NUMBERS:
            return str(_NUMBERS[type_].unpack_from(self.data, at)[0])
        if type_ == _DOUBLE:
            return double_text(_FLOAT64.unpack_from(self.data, at)[0])
        if type_ == _OPAQUE:
            return _opaque(self.data[at], self._sized(at + 1))
        raise ValueError(f"damaged JSON: type {type_}")

    def _container(self, type_: int, begin: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError(f"damaged JSON: deeper than {_MAX_DEPTH - 1}")
        large = type_ in (_LARGE_OBJECT, _LARGE_ARRAY)
        keyed = type_ in (_SMALL_OBJECT, _LARGE_OBJECT)
        width = 4 if large else 2
        count = self._number(begin, width)
        key_size, value_size = width + 2, width + 1
        self._pay(count * (value_size + (key_size if keyed else 0)))
        keys_at = begin + 2 * width
        values_at = keys_at + (count * key_size if keyed else 0)
        keys, values = [], []
        for index in range(count):
            values.append(self._entry(begin, values_at + index * value_size, width, depth))
            if keyed:
                entry = keys_at + index * key_size
                start = begin + self._number(entry, width)
                keys.append(self._bytes(start, self._number(entry + width, 2)).decode("utf-8"))
        return self._joined(keys if keyed else None, values)

    def _joined(self, keys: list[str] | None, values: list[Any]) -> Any:
        if keys is None:
            return f"[{','.join(values)}]"
        return f"{{{','.join(f'{quoted(key)}:{value}' for key, value in zip(keys, values, strict=True))}}}"

    def _entry(self, begin: int, entry: int, width: int, depth: int) -> Any:
        """Return a value from a container's table: it stands in the table itself if it fits into the offset's place."""
        type_ = self.data[entry]
        if type_ == _LITERAL:
            return self._literal(self.data[entry + 1])
        if type_ in (5, 6) or (type_ in (7, 8) and width == 4):
            return self.value(type_, entry + 1, depth)
        return self.value(type_, begin + self._number(entry + 1, width), depth)

    @staticmethod
    def _literal(code: int) -> str:
        if code not in _LITERALS:
            raise ValueError(f"damaged JSON: literal {code}")
        return _LITERALS[code]

    def _number(self, at: int, width: int) -> int:
        if at + width > len(self.data):
            raise ValueError("damaged JSON: ends too early")
        return int.from_bytes(self.data[at : at + width], "little")

    def _sized(self, at: int) -> bytes:
        """Return the bytes behind a length. The length has seven bits a byte, low bits first, in at most five bytes."""
        length = 0
        for index in range(5):
            byte = self.data[at + index]
            length |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return self._bytes(at + index + 1, length)
        raise ValueError("damaged JSON: a length of more than five bytes")

    def _bytes(self, start: int, length: int) -> bytes:
        self._pay(length)
        if start + length > len(self.data):
            raise ValueError("damaged JSON: ends too early")
        return self.data[start : start + length]

    def _pay(self, size: int) -> None:
        self.budget -= size
        if self.budget < 0:
            raise ValueError("damaged JSON: bytes used twice")


class _Tree(_Document):
    """A document that is read as a tree: containers become lists and dictionaries."""

    __slots__ = ()

    def _joined(self, keys: list[str] | None, values: list[Any]) -> Any:
        return values if keys is None else dict(zip(keys, values, strict=True))


def _opaque(type_: int, raw: bytes) -> str:
    """Return a value of a type that JSON lacks: numbers and times in the server's notation, all else in base64."""
    if type_ == _DECIMAL:
        return decimal_text(raw[2:], raw[0], raw[1])
    if type_ in (_DATE, _DATETIME, _TIMESTAMP, _TIME):
        return f'"{_temporal(type_, _INT64.unpack(raw)[0])}"'
    coded = base64.b64encode(raw).decode("ascii")
    lines = [coded[at : at + _BASE64_LINE] for at in range(0, len(coded), _BASE64_LINE)]
    # The server breaks base64 into lines and then escapes the line breaks.
    return f'"base64:type{type_}:' + "\\n".join(lines) + '"'


def _temporal(type_: int, packed: int) -> str:
    magnitude = abs(packed) if type_ == _TIME else packed
    micros, whole = magnitude & 0xFFFFFF, magnitude >> 24
    if type_ == _TIME:
        sign = "-" if packed < 0 else ""
        return f"{sign}{whole >> 12 & 0x3FF:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}.{micros:06d}"
    year, month = divmod(whole >> 22, 13)
    day = f"{year:04d}-{month:02d}-{whole >> 17 & 31:02d}"
    if type_ == _DATE:
        return day
    return f"{day} {whole >> 12 & 31:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}.{micros:06d}"
