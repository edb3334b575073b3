"""The definition of a MySQL type in every respect: the entry that a family's file makes for each of its types.

Values come from two sources, row images and SELECT, and meet in the canonical column. A row that is read by SELECT and
the same row from the binlog therefore give equal bytes. From the canonical column two ways lead out: through Connect
values to JSON and Avro, and to a DataFrame's columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from incsnap.columns.arrow import Array, BytesArray
from incsnap.columns.images import Field
from incsnap.columns.packets import Spans
from incsnap.columns.variable import Bools
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema
from incsnap.tables import Column
from incsnap.types.modes import Modes

Decode = Callable[[Spans], pa.Array]


def _as_it_is(values: Array, _modes: Modes) -> Array:
    return values


def unchanged(values: Array) -> Array:
    """Return the values as they are."""
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDefinition:
    """The definition of one type for one column. All functions take and return whole columns.

    The first group of fields is how values come in, the second how they go out.
    """

    arrow: pa.DataType  #: type of the canonical column
    field: Callable[[int], Field]  #: `WireColumn.meta` -> how many bytes the column takes in a row image
    #: values in row images -> canonical column. Raises ValueError (pa.ArrowInvalid is one) or IndexError for a damaged
    #: value.
    decode: Decode
    select: Callable[[str], str] = str  #: quoted column -> expression that selects it in the text protocol without loss
    #: texts of the text protocol (`pa.binary()`) -> canonical column. Raises ValueError (pa.ArrowInvalid is one) for a
    #: value that is not of the type.
    from_text: Callable[[BytesArray], Array]
    #: DEFAULT as information_schema shows it -> what the text protocol would print for the value; None if unknown
    printed_default: Callable[[str], bytes | None] = str.encode

    #: Connect schema as Debezium 3.6.1 gives it, without a default; optional if the column is nullable
    schema: Callable[[Modes], Schema]
    #: canonical column -> Connect values, for Avro, and for JSON without `json_texts`: boolean, int64 for all integers,
    #: float32, float64, string, binary, struct or list of float32
    connect_values: Callable[[Array, Modes], Array] = _as_it_is
    #: canonical column -> JSON text, if this is faster than through Connect values
    json_texts: Callable[[Array, Modes], Encoded] | None = None
    #: mask of the values that the modes cannot express; None: the modes can express all. Any result under a null.
    inexpressible: Callable[[Array, Modes], Bools | None] | None = None
    rounded: bool = False  #: some modes write different values alike, so a record's key may not tell its rows apart
    frame: Callable[[Array], Array] = unchanged  #: canonical column -> a DataFrame's column, whatever the modes
    frame_type: pa.DataType | None = None  #: Arrow type of the DataFrame's column; None here: that of the canonical one


#: Name of a type in MySQL -> function that returns the definition for a column of the type.
Family = dict[str, Callable[[Column], TypeDefinition]]


def fixed_width(size: int) -> Callable[[int], Field]:
    """Return the `field` function of a type that always takes `size` bytes in a row image, whatever the table map
    says."""
    field = Field(size)
    return lambda _meta: field


def string_field(meta: int) -> Field:
    """Return how many bytes a CHAR, VARCHAR, BINARY or VARBINARY takes in a row image.

    `meta`: its greatest length in bytes.
    """
    return Field(1 if meta < 256 else 2, prefixed=True)


def blob_field(meta: int) -> Field:
    """Return how many bytes a TEXT, BLOB, JSON, geometry or vector takes in a row image.

    `meta`: how many bytes its length has.
    """
    return Field(meta, prefixed=True)
