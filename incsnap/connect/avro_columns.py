"""Rows in Avro's binary encoding: whole columns are encoded, then one Arrow kernel joins them into rows.

Short parts (numbers, lengths, the member of a union, literals) are laid out as byte columns side by side. A number of
up to `w` bytes is `w` columns, each with a mask of the rows that have this byte. Neighbouring byte columns become one
piece of the join, so a row costs as few pieces as it has texts. Texts are pieces as they are, without a copy.
https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import Bools, Bytes, Ints, matrix, offsets_of, split, too_large, valid, variable
from incsnap.connect.schema import Schema
from incsnap.errors import ValueRefused

_INTEGERS = frozenset(("int8", "int16", "int32", "int64"))
_ARROW = {
    **dict.fromkeys(_INTEGERS, pa.int64()),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
#: Bytes up to which a literal becomes byte columns, at 3 ns a byte and row. A longer literal is a piece of its own.
_SHORT = 8


class AvroRow:
    """Rows that are being put together: fields are added from left to right, then `joined` returns the rows.

    >>> row = AvroRow(2)
    >>> row.field("id", Schema("int32"), pa.array([1, 300]))
    >>> row.field("name", Schema("string"), pa.array(["ab", "c"]))
    >>> row.joined().to_pylist()
    [b'\\x02\\x04ab', b'\\xd8\\x04\\x02c']
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._parts: list[Any] = []
        #: Byte columns since the last piece: (byte of each row or of all, mask of the rows that have it, None for all).
        self._bytes: list[tuple[Bytes | int, Bools | None]] = []

    def literal(self, data: bytes) -> None:
        """Add the same bytes to every row."""
        if len(data) > _SHORT:
            self._flush()
            self._parts.append(data)
        else:
            self._bytes += [(byte, None) for byte in data]

    def encoded(self, parts: Any) -> None:
        """Add the encoded bytes of each row (`pa.binary()`); a null adds nothing."""
        self._flush()
        self._parts.append(parts)

    def field(self, name: str, schema: Schema, values: Any) -> None:
        """Add a field.

        `values`: one Connect value per row. Raise ValueRefused for a null in a field that is not optional.
        """
        present = valid(values)
        if schema.optional:
            null, value = (0, 2) if schema.default is None else (2, 0)
            self._bytes.append((value if present is None else np.where(present, value, null).astype(np.uint8), None))
        elif present is not None:
            raise ValueRefused(
                f"Field {name} has a null, which its schema does not allow",
                "A value has no form under the chosen modes (time.precision.mode), or the binlog lacks it"
                " (binlog_row_image must be FULL). Change the mode, or let the column take NULL.",
            )
        self._value(name, schema, values, present)

    def joined(self) -> Any:
        """Return the rows as `pa.binary()`. Raise IncsnapError if they would take 2 GiB."""
        self._flush()
        return join(self._parts, b"", self._rows)

    def _value(self, name: str, schema: Schema, values: Any, present: Bools | None) -> None:
        if schema.type in _INTEGERS:
            self._number(_numpy(values, 0), present)
        elif schema.type in ("string", "bytes"):
            offsets, _ = split(values)
            self._number(np.diff(offsets).astype(np.int64), present)
            self.encoded(values.cast(pa.binary()))
        elif schema.type == "boolean":
            flags = values.cast(pa.uint8())
            self._bytes.append((_numpy(flags, 0), present))
        elif schema.type in ("float32", "float64"):
            self._fixed(_numpy(values, 0.0), present)
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
        if not len(values):
            return
        values = values.astype(np.int64, copy=False)
        zigzag: npt.NDArray[Any] = ((values << 1) ^ (values >> 63)).view(np.uint64)
        longest, shortest = _groups(int(zigzag.max())), _groups(int(zigzag.min()))
        if longest <= 4:
            zigzag = zigzag.astype(np.uint32)
        for k in range(longest):
            has = present
            if k >= shortest:
                has = zigzag != 0
            byte = zigzag.astype(np.uint8)
            zigzag = zigzag >> 7
            if k + 1 < shortest:
                byte |= 0x80
            elif k + 1 < longest:
                byte &= 0x7F
                byte |= (zigzag != 0).view(np.uint8) << 7
            self._bytes.append((byte, has))

    def _fixed(self, values: npt.NDArray[Any], present: Bools | None) -> None:
        cells = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
        self._bytes += [(cells[:, k], present) for k in range(values.dtype.itemsize)]

    def _struct(self, name: str, schema: Schema, values: Any, present: Bools | None) -> None:
        if present is not None:
            values = values.filter(pa.array(present))
        inner = AvroRow(len(values))
        for (field, of_field), child in zip(schema.fields, values.flatten(), strict=True):
            inner.field(f"{name}.{field}", of_field, child)
        self.encoded(inner.joined() if present is None else _spread(inner.joined(), present))

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

    def _flush(self) -> None:
        columns, self._bytes = self._bytes, []
        if not columns:
            return
        if all(isinstance(byte, int) and has is None for byte, has in columns):
            self._parts.append(bytes(byte for byte, _ in columns if isinstance(byte, int)))
            return
        cells = np.empty((self._rows, len(columns)), np.uint8)
        for k, (byte, _) in enumerate(columns):
            cells[:, k] = byte
        if all(has is None for _, has in columns):
            self._parts.append(matrix(cells.reshape(-1), self._rows, len(columns), pa.binary()))
            return
        kept = np.ones(cells.shape, np.bool_)
        for k, (_, has) in enumerate(columns):
            if has is not None:
                kept[:, k] = has
        lengths = kept.sum(axis=1, dtype=np.int64)
        self._parts.append(variable(offsets_of(lengths), cells[kept], pa.binary()))


def join(parts: Sequence[Any], null: bytes, rows: int) -> Any:
    """Return the pieces joined for each row (`pa.binary()`). The bytes `null` replace a null.

    A piece is an array with one element per row, or bytes that all rows share. Raise IncsnapError if the result would
    take 2 GiB.
    """
    if all(isinstance(part, bytes) for part in parts):
        return pa.array([b"".join(parts)] * rows, pa.binary())
    if len(parts) == 1 and not parts[0].null_count:
        return parts[0]
    scalars = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
    try:
        return pc.binary_join_element_wise(
            *scalars, pa.scalar(b"", pa.binary()), null_handling="replace", null_replacement=null.decode("ascii")
        )
    except (pa.ArrowCapacityError, pa.ArrowInvalid) as error:
        raise too_large("The Avro of these rows") from error


def one(schema: Schema, value: Any) -> bytes:
    """Return the Avro encoding of one value of a primitive schema, for a field that all rows share."""
    row = AvroRow(1)
    row.field(schema.name or schema.type, schema, pa.array([value], _ARROW[schema.type]))
    encoded: bytes = row.joined()[0].as_py()
    return encoded


def _groups(value: int) -> int:
    """Return how many bytes `value` takes with seven bits in each byte."""
    return max(1, -(-value.bit_length() // 7))


def _numpy(values: Any, fill: Any) -> npt.NDArray[Any]:
    if values.null_count:
        values = values.fill_null(fill)
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


def _spread(values: Any, present: Bools) -> Any:
    """Return an array with `values` in the rows where `present` is True, and no bytes in the other rows."""
    offsets, data = split(values)
    places = np.zeros(len(present) + 1, np.int64)
    np.cumsum(present, out=places[1:])
    return variable(offsets[places], data, pa.binary())
