"""Rows in Avro's binary encoding: whole columns are encoded, then joined into rows (`byte_rows`).

https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.columns.variable import Bools, Ints, split, valid, variable
from incsnap.connect.arrow_values import ARROW
from incsnap.connect.byte_rows import ByteRows, plain_numbers, refused_null, spread
from incsnap.connect.schema import Schema

_INTEGERS = frozenset(("int8", "int16", "int32", "int64"))


class AvroRow(ByteRows):
    """Rows that are being put together: fields are added from left to right, then `joined` returns the rows.

    >>> row = AvroRow(2)
    >>> row.field("id", Schema("int32"), pa.array([1, 300]))
    >>> row.field("name", Schema("string"), pa.array(["ab", "c"]))
    >>> row.joined().to_pylist()
    [b'\\x02\\x04ab', b'\\xd8\\x04\\x02c']
    """

    def field(self, name: str, schema: Schema, values: Any) -> None:
        """Add a field.

        `values`: one Connect value per row. Raise ValueRefused for a null in a field that is not optional.
        """
        present = valid(values)
        if schema.optional:
            null, value = (0, 2) if schema.default is None else (2, 0)
            self._bytes.append((value if present is None else np.where(present, value, null).astype(np.uint8), None))
        elif present is not None:
            raise refused_null(name)
        self._value(name, schema, values, present)

    def _value(self, name: str, schema: Schema, values: Any, present: Bools | None) -> None:
        if schema.type in _INTEGERS:
            self._number(plain_numbers(values, 0), present)
        elif schema.type in ("string", "bytes"):
            offsets, _ = split(values)
            self._number(np.diff(offsets).astype(np.int64), present)
            self.encoded(values.cast(pa.binary()))
        elif schema.type == "boolean":
            flags = values.cast(pa.uint8())
            self._bytes.append((plain_numbers(flags, 0), present))
        elif schema.type in ("float32", "float64"):
            self._fixed(plain_numbers(values, 0.0), present)
        elif schema.type == "struct":
            self._struct(name, schema, values, present)
        elif schema.type == "array" and schema.items is not None:
            self._array(name, schema.items, values, present)
        else:
            raise NotImplementedError(f"{schema.type} in a row")

    def _number(self, values: Ints, present: Bools | None) -> None:
        """Add zig-zag numbers of variable length. The bytes of int and long are the same."""
        if present is not None:
            values = np.where(present, values, 0)
        values = values.astype(np.int64, copy=False)
        self._varint(((values << 1) ^ (values >> 63)).view(np.uint64), present)

    def _struct(self, name: str, schema: Schema, values: Any, present: Bools | None) -> None:
        if present is not None:
            values = values.filter(pa.array(present))
        inner = AvroRow(len(values))
        for (field, of_field), child in zip(schema.fields, values.flatten(), strict=True):
            inner.field(f"{name}.{field}", of_field, child)
        self.encoded(inner.joined() if present is None else spread(inner.joined(), present))

    def _array(self, name: str, of_item: Schema, values: Any, present: Bools | None) -> None:
        """Add each array as one block of all its items, then the empty block that ends every array."""
        places = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + self._rows + 1]
        counts = np.diff(places).astype(np.int64)
        inner = AvroRow(len(values.values))
        inner.field(f"{name}[]", of_item, values.values)
        offsets, data = split(inner.joined())
        some = counts > 0 if present is None else (counts > 0) & present
        self._number(counts, some)
        self.encoded(variable(offsets[places], data, pa.binary(), present))
        self._bytes.append((0, present))


def one(schema: Schema, value: Any) -> bytes:
    """Return the Avro encoding of one value of a primitive schema, for a field that all rows share."""
    row = AvroRow(1)
    row.field(schema.name or schema.type, schema, pa.array([value], ARROW[schema.type]))
    encoded: bytes = row.joined()[0].as_py()
    return encoded
