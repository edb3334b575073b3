"""The type VECTOR: float32 numbers one after another in MySQL, an array of them in Connect.

https://dev.mysql.com/doc/refman/en/vector.html
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import Array
from incsnap.columns.gather import binary
from incsnap.columns.variable import bitmap, dense, fixed, valid
from incsnap.connect.schema import Schema
from incsnap.tables import Column
from incsnap.types.definition import Family, TypeDefinition, blob_field, unchanged

#: The type in a DataFrame. Spark names the elements of its arrays so.
_OF_FRAME = pa.list_(pa.field("element", pa.float32()))


def _vector(column: Column) -> TypeDefinition:
    schema = Schema("array", column.nullable, "io.debezium.data.FloatVector", 1, items=Schema("float32"))
    return TypeDefinition(
        arrow=pa.binary(),
        field=blob_field,
        decode=lambda spans: _checked(binary(spans)),
        from_text=unchanged,
        schema=lambda _modes: schema,
        connect_values=lambda values, _modes: _connect(values),
        frame=lambda values: _connect(values).cast(_OF_FRAME),
        frame_type=_OF_FRAME,
    )


def _checked(values: Array) -> Array:
    """Return the values as they are. Raise ValueError if the length of one is no multiple of four: it is damaged."""
    offsets, _ = dense(values)
    if (np.diff(offsets) & 3).any():
        raise ValueError("a VECTOR whose bytes are not a multiple of four")
    return values


def _connect(values: Array) -> Array:
    """Return lists of float32."""
    offsets, data = dense(_checked(values))
    numbers = fixed(np.frombuffer(np.ascontiguousarray(data), "<f4"), pa.float32())
    buffers = [bitmap(valid(values)), pa.py_buffer(np.ascontiguousarray(offsets >> 2))]
    return pa.Array.from_buffers(pa.list_(pa.float32()), len(values), buffers, children=[numbers])


TYPES: Family = {"vector": _vector}
