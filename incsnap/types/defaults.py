"""A column's DEFAULT as its schema shows it: the value that the column would hold, through the column's own conversion.

information_schema prints a literal default as the text protocol prints the value, so one conversion serves both;
only bit strings and byte strings look different there.
https://dev.mysql.com/doc/refman/en/information-schema-columns-table.html
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from incsnap.tables import Column, TableId
from incsnap.types.column_type import describe
from incsnap.types.modes import Modes

_BITS = re.compile(r"b'([01]+)'\Z")
_HEX = re.compile(r"0x((?:[0-9A-Fa-f]{2})*)\Z")
_BYTE_STRINGS = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_NOW = re.compile(r"(CURRENT_TIMESTAMP|NOW)(\(\d?\))?\Z", re.IGNORECASE)


def default_value(column: Column, text: str, table: TableId, modes: Modes) -> Any:
    """``text`` (COLUMN_DEFAULT) as Connect's JsonConverter writes the value; None where it is none that can be told.

    CURRENT_TIMESTAMP is the epoch, as in Debezium.
    """
    type_ = describe(column, table)
    if column.type in ("timestamp", "datetime") and _NOW.match(text):
        canonical = pa.array([0], type_.arrow)
    elif column.type == "bit":
        bits = _BITS.match(text)
        canonical = pa.array([int(bits[1], 2)] if bits else [None], type_.arrow)
    else:
        raw = text.encode()
        if column.type in _BYTE_STRINGS and (digits := _HEX.match(text)):
            raw = bytes.fromhex(digits[1])
        if column.type == "binary":
            raw = raw.ljust(column.length, b"\0")
        try:
            canonical = type_.from_text(pa.array([raw], pa.binary()))
        except (pa.ArrowInvalid, ValueError):
            return None
    return json.loads(type_.to_json(canonical, modes)[0].as_py())
