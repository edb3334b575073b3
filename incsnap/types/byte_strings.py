"""The types BINARY, VARBINARY and BLOB, in the forms of `binary.handling.mode`."""

from __future__ import annotations

import re

import pyarrow as pa

from incsnap.columns.arrow import Array
from incsnap.columns.gather import binary, zero_filled
from incsnap.columns.packets import Spans
from incsnap.connect import json_bytes
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema
from incsnap.tables import BYTE_STRINGS, Column
from incsnap.types.definition import Family, TypeDefinition, blob_field, string_field, unchanged
from incsnap.types.modes import Modes

_HEX = re.compile(r"0x((?:[0-9A-Fa-f]{2})*)\Z")


def _byte_string(column: Column) -> TypeDefinition:
    padded = column.type == "binary"

    def decode(spans: Spans) -> pa.Array:
        """Return the values of a BINARY(n). The binlog leaves out its trailing zeros, so they are put back."""
        return zero_filled(binary(spans), column.length)

    def default(text: str) -> bytes:
        digits = _HEX.match(text)
        raw = bytes.fromhex(digits[1]) if digits else text.encode()
        return raw.ljust(column.length, b"\0") if padded else raw

    return TypeDefinition(
        arrow=pa.binary(),
        field=blob_field if column.type.endswith("blob") else string_field,
        decode=decode if padded else binary,
        # The text protocol prints byte strings as they are.
        from_text=unchanged,
        schema=lambda modes: Schema("bytes" if modes.binary_handling == "bytes" else "string", column.nullable),
        connect_values=_connect,
        json_texts=_encode,
        printed_default=default,
    )


def _connect(values: Array, modes: Modes) -> Array:
    match modes.binary_handling:
        case "bytes":
            return values
        case "hex":
            return json_bytes.hexadecimal(values)
    return json_bytes.base64(values, url_safe=modes.binary_handling == "base64-url-safe")


def _encode(values: Array, modes: Modes) -> Encoded:
    """Return the values as JSON.

    Base64 and hexadecimal digits need no escaping; Connect's converter writes bytes as base64.
    """
    raw = _connect(values, modes)
    return Encoded(json_bytes.base64(raw) if modes.binary_handling == "bytes" else raw, quoted=True)


TYPES: Family = dict.fromkeys(BYTE_STRINGS, _byte_string)
