"""Rows in Protobuf's binary encoding: whole columns are encoded, then joined into rows (`byte_rows`).

A field of proto3 without presence is left out if it has the type's default: 0, false, or no bytes. NULL is left out
too, so readers see the default. With the option optional or wrapped of `ProtoStyle`, only NULL is left out.
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import Bools, Ints, split, valid, variable
from incsnap.connect.arrow_values import ARROW
from incsnap.connect.byte_rows import ByteRows, plain_numbers, refused_null, spread
from incsnap.connect.proto_schema import LOGICAL, ProtoStyle
from incsnap.connect.schema import Schema

_INTEGERS = frozenset(("int8", "int16", "int32", "int64"))
_TEXTS = frozenset(("string", "bytes"))
#: Wire types: how a reader finds the end of a field.
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_DAY_MS, _HOUR_MS, _MINUTE_MS, _SECOND_MS, _NANOS_IN_MS = 86_400_000, 3_600_000, 60_000, 1_000, 1_000_000


class ProtoRow(ByteRows):
    """Rows that are being put together: fields are added by their numbers, then `joined` returns the rows.

    >>> row = ProtoRow(2, ProtoStyle())
    >>> row.field(1, "id", Schema("int32"), pa.array([1, 300]))
    >>> row.field(2, "name", Schema("string", optional=True), pa.array(["ab", None]))
    >>> row.joined().to_pylist()
    [b'\\x08\\x01\\x12\\x02ab', b'\\x08\\xac\\x02']
    """

    def __init__(self, rows: int, style: ProtoStyle) -> None:
        super().__init__(rows)
        self._style = style

    def field(self, number: int, name: str, schema: Schema, values: Any) -> None:
        """Add the field of this number.

        `values`: one Connect value per row. Raise ValueRefused for a null in a field that is not optional.
        """
        present = valid(values)
        if present is not None and not schema.optional:
            raise refused_null(name)
        if schema.type in ("array", "map"):
            self._repeated(number, name, schema, values, present)
        elif schema.name in LOGICAL:
            self._message(number, values, present, lambda some: logical_messages(schema, some))
        elif schema.type == "struct":
            self._message(number, values, present, lambda some: self._structs(name, schema, some))
        elif schema.optional and self._style.wrapped:
            self._message(number, values, present, lambda some: _wrappers(schema.type, some))
        else:
            self.scalar(number, schema.type, values, present, explicit=schema.optional and self._style.optional)

    def fields(self, prefix: str, schema: Schema, values: Any) -> None:
        """Add all fields of structs, none of which is null. `prefix`: text before names in errors."""
        for number, ((name, of_field), child) in enumerate(zip(schema.fields, values.flatten(), strict=True), 1):
            self.field(number, prefix + name, of_field, child)

    def messages(self, number: int, encoded: Any) -> None:
        """Add a field of messages that are encoded (`pa.binary()`, one per row); a null adds nothing."""
        lengths, present = _lengths(encoded), valid(encoded)
        self._length(number, lengths, present)
        self.encoded(encoded)

    def message_of(self, number: int, parts: list[Any]) -> None:
        """Add a field with one message per row, made of `parts`: arrays of encoded bytes, one element per row."""
        self._length(number, np.sum([_lengths(part) for part in parts], axis=0, dtype=np.int64), None)
        for part in parts:
            self.encoded(part)

    def scalar(self, number: int, kind: str, values: Any, present: Bools | None, *, explicit: bool = False) -> None:
        """Add a field of the primitive type `kind`.

        `present`: False for null. `explicit`: defaults are written too, because the field has presence.
        """
        if kind in _TEXTS:
            lengths = _lengths(values)
            self._length(number, lengths, present if explicit else _where(lengths != 0))
            self.encoded(values.cast(pa.binary()))
            return
        numbers = _numbers(kind, values)
        self._write(number, kind, numbers, present if explicit else _where(_bits(numbers) != 0))

    def items(self, kind: str, values: Any) -> None:
        """Add the numbers of a list without tags."""
        self._plain(kind, _numbers(kind, values), None)

    def _write(self, number: int, kind: str, numbers: npt.NDArray[Any], has: Bools | None) -> None:
        wire = (
            _VARINT
            if kind in _INTEGERS or kind == "boolean"
            else {4: _FOUR_BYTES, 8: _EIGHT_BYTES}[numbers.dtype.itemsize]
        )
        self._tag(number, wire, has)
        self._plain(kind, numbers, has)

    def _plain(self, kind: str, numbers: npt.NDArray[Any], has: Bools | None) -> None:
        if kind == "boolean":
            self._bytes.append((numbers, has))
        elif kind in _INTEGERS:
            # A negative number takes ten bytes, as the bits of 64 have it.
            self._varint(numbers.view(np.uint64) if has is None else np.where(has, numbers, 0).view(np.uint64), has)
        else:
            self._fixed(numbers, has)

    def _tag(self, number: int, wire: int, has: Bools | None) -> None:
        key = number << 3 | wire
        while key > 0x7F:
            self._bytes.append((key & 0x7F | 0x80, has))
            key >>= 7
        self._bytes.append((key, has))

    def _length(self, number: int, lengths: Ints, has: Bools | None) -> None:
        """Add the tag and the length of a text, message or list."""
        self._tag(number, _LENGTH, has)
        self._varint((lengths if has is None else np.where(has, lengths, 0)).astype(np.uint64), has)

    def _message(self, number: int, values: Any, present: Bools | None, encode: Callable[[Any], Any]) -> None:
        """Add a field of messages, which `encode` makes of the values that are not null."""
        if present is None:
            self.messages(number, encode(values))
            return
        inner = spread(encode(values.filter(pa.array(present))), present)
        self._length(number, _lengths(inner), present)
        self.encoded(inner)

    def _structs(self, name: str, schema: Schema, values: Any) -> Any:
        inner = ProtoRow(len(values), self._style)
        inner.fields(f"{name}.", schema, values)
        return inner.joined()

    def _repeated(self, number: int, name: str, schema: Schema, values: Any, present: Bools | None) -> None:
        """Add the items of each list, or the entries of each map. A list without items adds nothing."""
        assert schema.items is not None
        if not self._rows:
            return
        places = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + self._rows + 1]
        if schema.type == "map":
            entries = Schema("struct", fields=(("key", Schema("string")), ("value", schema.items)))
            items = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
            of_item = entries
        else:
            items, of_item = values.values, schema.items
        if items.null_count:
            raise refused_null(f"{name}[]")
        inner = ProtoRow(len(items), self._style)
        packed = of_item.type not in ("string", "bytes", "struct") and of_item.name not in LOGICAL
        if packed:
            inner.items(of_item.type, items)
        elif of_item.type in _TEXTS and of_item.name not in LOGICAL:
            inner.messages(number, items.cast(pa.binary()))
        else:
            inner.field(number, f"{name}[]", of_item.as_optional(False), items)
        offsets, data = split(inner.joined())
        lists = variable(offsets[places], data, pa.binary(), present)
        if packed:
            lengths = _lengths(lists)
            self._length(number, lengths, _where(lengths != 0))
        self.encoded(lists)


def single_messages(schema: Schema, values: Any, style: ProtoStyle) -> Any:
    """Return the message of each value that is a whole key or value (`pa.binary()`); null for null.

    A struct is its message, and a primitive value is in its wrapper.
    """
    present = valid(values)
    some = values if present is None else values.filter(pa.array(present))
    if schema.type == "struct":
        row = ProtoRow(len(some), style)
        row.fields("", schema, some)
        messages = row.joined()
    else:
        messages = _wrappers(schema.type, some)
    if present is None:
        return messages
    return pc.if_else(pa.array(present), spread(messages, present), pa.scalar(None, pa.binary()))


def one(number: int, schema: Schema, value: Any, style: ProtoStyle) -> bytes:
    """Return the field with one value of a primitive schema, for a field that all rows share."""
    row = ProtoRow(1, style)
    row.field(number, schema.name or schema.type, schema, pa.array([value], ARROW[schema.type]))
    encoded: bytes = row.joined()[0].as_py()
    return encoded


def logical_messages(schema: Schema, values: Any) -> Any:
    """Return the message of each value of a logical type (`pa.binary()`). No value is null."""
    row = ProtoRow(len(values), ProtoStyle())
    if schema.type == "bytes":
        scale = int(dict(schema.parameters)["scale"])
        row.scalar(1, "bytes", values, None)
        row.scalar(2, "int32", pa.array(decimal_digits(values)), None)
        row.literal(one(3, Schema("int32"), scale, ProtoStyle()))
        return row.joined()
    for number, (kind, numbers) in enumerate(_parts(LOGICAL[schema.name or ""][0], plain_numbers(values, 0)), 1):
        row.scalar(number, kind, pa.array(numbers), None)
    return row.joined()


def _parts(message: str, numbers: Ints) -> list[tuple[str, Ints]]:
    """Return the types and values of the fields of a date, a time of day or a timestamp."""
    numbers = numbers.astype(np.int64, copy=False)
    if message == "google.type.Date":
        days = numbers.astype("datetime64[D]")
        months = days.astype("datetime64[M]")
        month = months.astype(np.int64)
        parts = [month // 12 + 1970, month % 12 + 1, (days - months).astype(np.int64) + 1]
        return [("int32", part) for part in parts]
    if message == "google.type.TimeOfDay":
        # The converter writes 24:00 as 0:00.
        of_day = numbers % _DAY_MS
        parts = [of_day // _HOUR_MS, of_day // _MINUTE_MS % 60, of_day // _SECOND_MS % 60]
        return [("int32", part) for part in (*parts, of_day % _SECOND_MS * _NANOS_IN_MS)]
    return [("int64", numbers // _SECOND_MS), ("int32", numbers % _SECOND_MS * _NANOS_IN_MS)]


def decimal_digits(values: Any) -> Ints:
    """Return how many digits each unscaled value has, 1 for 0.

    `values`: big-endian two's complement bytes without superfluous ones, as Connect's Decimal has them (at most 32).
    """
    offsets, data = split(values)
    lengths = np.diff(offsets).astype(np.int64)
    count, width = len(lengths), int(lengths.max(initial=0))
    width = 8 if width <= 8 else 32
    # Little-endian columns, filled up with the sign.
    cells = np.zeros((count, width), np.uint8)
    last = offsets[1:].astype(np.int64) - 1
    for k in range(int(lengths.max(initial=0))):
        has = lengths > k
        cells[has, k] = data[last[has] - k]
    negative = data[offsets[:-1]] > 0x7F if count else np.zeros(0, np.bool_)
    cells[(np.arange(width)[None, :] >= lengths[:, None]) & negative[:, None]] = 0xFF
    if width == 8:
        numbers = cells.view(np.int64).reshape(-1)
        size = np.where(numbers < 0, -numbers, numbers).view(np.uint64)
        return np.maximum(1, np.searchsorted(_POWERS, size, side="right"))
    buffers = [None, pa.py_buffer(cells)]
    texts = pa.Array.from_buffers(pa.decimal256(76, 0), count, buffers).cast(pa.string())
    return _lengths(texts) - negative


#: 1, 10, 100 and so on, as far as 64 bits go.
_POWERS = np.array([10**k for k in range(20)], np.uint64)


def _wrappers(kind: str, values: Any) -> Any:
    """Return each value in a message of google/protobuf/wrappers.proto. No value is null."""
    row = ProtoRow(len(values), ProtoStyle())
    row.scalar(1, kind, values, None)
    return row.joined()


def _numbers(kind: str, values: Any) -> npt.NDArray[Any]:
    """Return the values as numbers, 0 for null: int64, float32, float64, or uint8 for a boolean."""
    if kind == "boolean":
        return plain_numbers(values.cast(pa.uint8()), 0)
    if kind in _INTEGERS:
        return plain_numbers(values, 0).astype(np.int64, copy=False)
    return plain_numbers(values, 0.0).astype(np.float32 if kind == "float32" else np.float64, copy=False)


def _bits(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers whose 0 is the default alone: -0.0 is none."""
    return numbers.view(f"u{numbers.dtype.itemsize}") if numbers.dtype.kind == "f" else numbers


def _lengths(texts: Any) -> Ints:
    """Return the number of bytes of each text, 0 for null."""
    offsets, _ = split(texts)
    lengths = np.diff(offsets).astype(np.int64)
    present = valid(texts)
    return lengths if present is None else np.where(present, lengths, 0)


def _where(mask: Any) -> Bools | None:
    """Return the mask, or None if it is True everywhere."""
    has: Bools = mask
    return None if has.all() else has
