"""Rows of bytes: parts are laid out column by column, then one Arrow kernel joins them into rows.

Short parts (numbers, lengths, literals) are laid out as byte columns side by side. A number of up to `w` bytes is `w`
columns, each with a mask of the rows that have this byte. Neighbouring byte columns become one piece of the join, so a
row costs as few pieces as it has texts. Texts are pieces as they are, without a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import Bools, Bytes, matrix, offsets_of, split, too_large, variable
from incsnap.errors import ValueRefused

#: Bytes up to which a literal becomes byte columns, at 3 ns a byte and row. A longer literal is a piece of its own.
_SHORT = 8


class ByteRows:
    """Rows that are being put together: parts are added from left to right, then `joined` returns the rows."""

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

    def joined(self) -> Any:
        """Return the rows as `pa.binary()`. Raise IncsnapError if they would take 2 GiB."""
        self._flush()
        return join(self._parts, b"", self._rows)

    def _varint(self, values: npt.NDArray[np.uint64], present: Bools | None) -> None:
        """Add numbers with seven bits in each byte, the lowest first. Numbers where `present` is False must be 0."""
        if not len(values):
            return
        left: npt.NDArray[Any] = values
        longest, shortest = _groups(int(left.max())), _groups(int(left.min()))
        if longest <= 4:
            left = left.astype(np.uint32)
        for k in range(longest):
            has = present
            if k >= shortest:
                has = left != 0
            byte = left.astype(np.uint8)
            left = left >> 7
            if k + 1 < shortest:
                byte |= 0x80
            elif k + 1 < longest:
                byte &= 0x7F
                byte |= (left != 0).view(np.uint8) << 7
            self._bytes.append((byte, has))

    def _fixed(self, values: npt.NDArray[Any], present: Bools | None) -> None:
        """Add the bytes of numbers of a fixed width, the lowest first."""
        cells = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
        self._bytes += [(cells[:, k], present) for k in range(values.dtype.itemsize)]

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


def refused_null(name: str) -> ValueRefused:
    """Return the error for a null in the field `name`, whose schema is not optional."""
    return ValueRefused(
        f"Field {name} has a null, which its schema does not allow",
        "A value has no form under the chosen modes (time.precision.mode), or the binlog lacks it"
        " (binlog_row_image must be FULL). Change the mode, or let the column take NULL.",
    )


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
        raise too_large("The encoded rows") from error


def plain_numbers(values: Any, fill: Any) -> npt.NDArray[Any]:
    """Return the values as a NumPy vector, with `fill` for null."""
    if values.null_count:
        values = values.fill_null(fill)
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


def spread(values: Any, present: Bools) -> Any:
    """Return an array with `values` in the rows where `present` is True, and no bytes in the other rows."""
    offsets, data = split(values)
    places = np.zeros(len(present) + 1, np.int64)
    np.cumsum(present, out=places[1:])
    return variable(offsets[places], data, pa.binary())


def _groups(value: int) -> int:
    """Return how many bytes `value` takes with seven bits in each byte."""
    return max(1, -(-value.bit_length() // 7))
