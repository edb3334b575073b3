"""BINARY, VARBINARY and BLOBs, in the forms of ``binary.handling.mode``."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from incsnap.columns.gather import binary, zero_filled
from incsnap.columns.packets import Spans
from incsnap.connect import json_bytes
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema
from incsnap.tables import BYTE_STRINGS, Column
from incsnap.types.definition import Family, TypeDefinition, blob_field, string_field
from incsnap.types.modes import Modes

_HEX = re.compile(r"0x((?:[0-9A-Fa-f]{2})*)\Z")


def _byte_string(column: Column) -> TypeDefinition:
    padded = column.type == "binary"

    def decode(spans: Spans) -> pa.Array:
        """BINARY(n) is stored without its trailing zeros, so they are put back."""
        return zero_filled(binary(spans), column.length)

    def default(text: str) -> bytes:
        digits = _HEX.match(text)
        raw = bytes.fromhex(digits[1]) if digits else text.encode()
        return raw.ljust(column.length, b"\0") if padded else raw

    return TypeDefinition(
        arrow=pa.binary(),
        field=blob_field if column.type.endswith("blob") else string_field,
        decode=decode if padded else binary,
        from_text=as_printed,
        schema=lambda modes: Schema("bytes" if modes.binary_handling == "bytes" else "string", column.nullable),
        connect=_connect,
        encode=_encode,
        default=default,
    )


def as_printed(raw: Any) -> Any:
    """The text protocol gives byte strings as they are."""
    return raw


def _connect(values: Any, modes: Modes) -> Any:
    match modes.binary_handling:
        case "bytes":
            return values
        case "hex":
            return json_bytes.hexadecimal(values)
    return json_bytes.base64(values, url_safe=modes.binary_handling == "base64-url-safe")


def _encode(values: Any, modes: Modes) -> Encoded:
    """Digits of either kind need no escaping; Connect's converter writes bytes as base64."""
    raw = _connect(values, modes)
    return Encoded(json_bytes.base64(raw) if modes.binary_handling == "bytes" else raw, quoted=True)


TYPES: Family = dict.fromkeys(BYTE_STRINGS, _byte_string)
