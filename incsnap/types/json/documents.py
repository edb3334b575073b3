"""The type JSON: the compact text of a document, as a string under Debezium's name for it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import BytesArray, TextArray
from incsnap.columns.gather import binary
from incsnap.columns.packets import Spans
from incsnap.columns.variable import Bools, Bytes, dense, valid, variable
from incsnap.connect.schema import Schema
from incsnap.tables import Column
from incsnap.types.definition import Family, TypeDefinition, blob_field
from incsnap.types.json.binary import json_text

_QUOTE, _BACKSLASH, _BLANK = ord('"'), ord("\\"), ord(" ")


def _json(column: Column) -> TypeDefinition:
    schema = Schema("string", column.nullable, "io.debezium.data.Json", 1)
    return TypeDefinition(
        arrow=pa.string(),
        field=blob_field,
        decode=_decode,
        from_text=_from_text,
        schema=lambda _modes: schema,
    )


def _decode(spans: Spans) -> pa.Array:
    documents = binary(spans).to_pylist()
    return pa.array([None if document is None else json_text(document) for document in documents], pa.string())


def _from_text(raw: BytesArray) -> TextArray:
    """Return the texts without the blanks that the server prints after `,` and `:`. Blanks inside strings are kept.

    The whole column is handled as one text. A blank is inside a string if the number of quotes before it is odd. Every
    document closes its quotes, so the count goes on over all documents.
    """
    mask = valid(raw)
    offsets, data = dense(raw)
    outside = (data == _BLANK) & ~_inside(data)
    if outside.any():
        removed = np.zeros(len(data) + 1, np.int32)
        np.cumsum(outside, out=removed[1:])
        offsets, data = offsets - removed[offsets], data[~outside]
    return variable(offsets, data, pa.binary(), mask).cast(pa.string())


def _inside(data: Bytes) -> Bools:
    """Return a mask of the bytes: True if the number of string quotes before the byte is odd."""
    quotes = data == _QUOTE
    slashes = np.flatnonzero(data == _BACKSLASH)
    if len(slashes):
        first = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
        lengths = np.diff(first, append=len(slashes))
        after = slashes[first] + lengths
        escaped = after[(lengths & 1) == 1]
        quotes[escaped[escaped < len(data)]] = False
    inside: Bools = (np.cumsum(quotes, dtype=np.int32) & 1).astype(np.bool_)
    return inside


TYPES: Family = {"json": _json}
