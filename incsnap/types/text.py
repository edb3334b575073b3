"""The text types: the binlog has the column's own bytes in its own character set, every SELECT returns utf8mb4."""

from __future__ import annotations

import pyarrow as pa

from incsnap.columns.arrow import BytesArray, TextArray
from incsnap.columns.gather import binary, text
from incsnap.columns.packets import Spans
from incsnap.connect.json_text import strings
from incsnap.connect.schema import Schema
from incsnap.tables import TEXTS, Column
from incsnap.types.charsets import CHARSETS, UTF8, decode_column, decode_text, unknown_charset
from incsnap.types.definition import Family, TypeDefinition, blob_field, string_field


def _text(column: Column) -> TypeDefinition:
    if column.charset not in CHARSETS:
        raise unknown_charset(column)
    schema = Schema("string", column.nullable)

    def decode(spans: Spans) -> pa.Array:
        return decode_column(binary(spans), column.charset)

    return TypeDefinition(
        arrow=pa.string(),
        field=blob_field if column.type.endswith("text") else string_field,
        decode=text if column.charset in UTF8 else decode,
        from_text=_ucs2_text if column.charset == "ucs2" else utf8_text,
        schema=lambda _modes: schema,
        json_texts=lambda values, _modes: strings(values),
    )


def utf8_text(raw: BytesArray) -> TextArray:
    """Return strings as SELECT gives them. Raise pa.ArrowInvalid if one is not UTF-8."""
    return raw.cast(pa.string())


def _ucs2_text(raw: BytesArray) -> TextArray:
    """Return the strings of a ucs2 column.

    SELECT gives three bytes for each half of a surrogate pair, which is no UTF-8.
    """
    try:
        return utf8_text(raw)
    except pa.ArrowInvalid:
        encoded = raw.dictionary_encode()
        halves = (value.decode("utf-8", "surrogatepass") for value in encoded.dictionary.to_pylist())
        texts = [decode_text(each.encode("utf-16-be", "surrogatepass"), "ucs2") for each in halves]
        return pa.array(texts, pa.string()).take(encoded.indices)


TYPES: Family = dict.fromkeys(TEXTS, _text)
