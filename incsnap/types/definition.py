"""What one MySQL type is, in every respect: the entry that a family's file makes for each of its types.

Two sources meet in the canonical column, so that a row read by SELECT and the same row read from the binlog give equal
bytes; from there on there are two ways out: through Connect values into JSON and Avro, and into a DataFrame's columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from incsnap.columns.images import Field
from incsnap.columns.packets import Spans
from incsnap.columns.variable import Bools
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema
from incsnap.tables import Column
from incsnap.types.modes import Modes

Decode = Callable[[Spans], pa.Array]


def _as_it_is(values: Any, _modes: Modes) -> Any:
    return values


def unchanged(values: Any) -> Any:
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDefinition:
    """The first group is how values come in, the second how they go out; all functions take and give whole columns.

    ``arrow``: the type of the canonical column.
    ``field(meta)``: the column's place in a row image, where ``meta`` is ``WireColumn.meta``.
    ``decode``: the canonical column of what lies in row images; ``ValueError`` (pa.ArrowInvalid is one) or
    ``IndexError`` where a value is damaged.
    ``select``: the expression that selects a quoted column in the text protocol without losing anything of it.
    ``from_text``: the canonical column of what the text protocol prints (``pa.binary()``); ``pa.ArrowInvalid`` or
    ``ValueError`` where a value is not of the type.
    ``default``: of a DEFAULT as information_schema shows it, what the text protocol would print for the value; None
    where that cannot be told.

    ``schema``: the Connect schema, as Debezium 3.6.1 gives it; optional as the column is nullable, without a default.
    ``connect``: canonical values to Connect values, which Avro is written from, and JSON where there is no ``encode``.
    ``encode``: canonical values to JSON text, where that is faster than through Connect values.
    ``refused``: which values have no form under the modes, None when all have one; under a null it may say anything
    (the null holds 0).
    ``rounded``: do some modes give different values one form?  A record's key then does not tell its rows apart.
    ``frame``: canonical values to a DataFrame's column, of the Arrow type ``frame_type`` (None: that of the canonical
    column); no mode has a say in it.
    """

    arrow: pa.DataType
    field: Callable[[int], Field]
    decode: Decode
    select: Callable[[str], str] = str
    from_text: Callable[[Any], Any]
    default: Callable[[str], bytes | None] = str.encode

    schema: Callable[[Modes], Schema]
    connect: Callable[[Any, Modes], Any] = _as_it_is
    encode: Callable[[Any, Modes], Encoded] | None = None
    refused: Callable[[Any, Modes], Bools | None] | None = None
    rounded: bool = False
    frame: Callable[[Any], Any] = unchanged
    frame_type: pa.DataType | None = None


Family = dict[str, Callable[[Column], TypeDefinition]]
"""MySQL's name of a type -> what makes the definition for a column of it."""


def fixed_width(size: int) -> Callable[[int], Field]:
    """Always ``size`` bytes, whatever the table map says."""
    field = Field(size)
    return lambda _meta: field


def string_field(meta: int) -> Field:
    """CHAR, VARCHAR and their binary kin: ``meta`` is the greatest length in bytes."""
    return Field(1 if meta < 256 else 2, prefixed=True)


def blob_field(meta: int) -> Field:
    """TEXT, BLOB, JSON, geometries and vectors: ``meta`` is the number of bytes of the length."""
    return Field(meta, prefixed=True)
