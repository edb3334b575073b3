"""The type TIME: signed microseconds, -838:59:59.000000 to 838:59:59.000000."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import Array, BytesArray
from incsnap.columns.calendar import MICROSECONDS_PER_SECOND, SECONDS_PER_DAY
from incsnap.columns.gather import integers, primitive
from incsnap.columns.packets import Spans
from incsnap.columns.variable import Bools, Ints, dense, fixed, valid
from incsnap.tables import Column
from incsnap.types.definition import Decode, Family, TypeDefinition, fixed_width
from incsnap.types.modes import Modes
from incsnap.types.temporal.iso_text import shortest_iso
from incsnap.types.temporal.packed import fraction_bytes, fraction_micros, signed
from incsnap.types.temporal.precision import CONNECT, DEBEZIUM, form, milliseconds, nanoseconds, numbers, unescaped
from incsnap.types.temporal.printed import printed_times

_BYTES, _OFFSET = 3, 0x800000
_MICROS = ("int64", DEBEZIUM + "MicroTime")
_FORMS = {
    "adaptive_time_microseconds": _MICROS,
    "microseconds": _MICROS,
    "nanoseconds": ("int64", DEBEZIUM + "NanoTime"),
    "connect": ("int32", CONNECT + "Time"),
    "isostring": ("string", DEBEZIUM + "IsoTime"),
}


def _time(column: Column) -> TypeDefinition:
    return TypeDefinition(
        arrow=pa.int64(),
        field=fixed_width(_BYTES + fraction_bytes(column)),
        decode=_decode(fraction_bytes(column)),
        from_text=lambda raw: _from_text(raw, column.fraction),
        schema=lambda modes: form(*_FORMS[modes.time_precision], column.nullable),
        connect_values=_connect,
        json_texts=unescaped(_connect),
        inexpressible=_refused,
        # Milliseconds round values.
        rounded=column.fraction > 3,
        frame=lambda values: printed_times(values, column.fraction),
        frame_type=pa.string(),
    )


def _decode(fraction: int) -> Decode:
    """Return the decoder of TIME with `fraction` bytes of fraction.

    A value has hours in 10 bits, minutes in 6, seconds in 6, then the fraction. Integer part and fraction are one
    integer, which is negated as a whole. So the fraction of a negative time borrows from the integer part. Taking the
    absolute value of both together undoes that.
    """

    def decode(spans: Spans) -> pa.Array:
        packed = signed(integers(spans, _BYTES + fraction, signed=False, big=True)) - (_OFFSET << 8 * fraction)
        magnitude = np.abs(packed)
        whole = magnitude >> 8 * fraction
        seconds = (whole >> 12 & 0x3FF) * 3600 + (whole >> 6 & 63) * 60 + (whole & 63)
        micros = seconds * MICROSECONDS_PER_SECOND + fraction_micros(magnitude, fraction)
        return primitive(micros * np.sign(packed), spans.valid, pa.int64())

    return decode


def _from_text(raw: BytesArray, fraction: int) -> Array:
    """Return the microseconds of texts.

    A TIME has a sign and two or three digits of hours, so its text has no fixed width and is read from its end.
    """
    n = len(raw)
    mask = valid(raw)
    if mask is not None:
        raw = raw.fill_null(b"00:00:00" + (b"." + b"0" * fraction if fraction else b""))
    offsets, data = dense(raw)
    start, end = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    if n == 0:
        return fixed(np.zeros(0, np.int64), pa.int64())
    tail = 6 + (fraction + 1 if fraction else 0)  # ":MM:SS" and ".ffffff"

    def digits(before_end: int, count: int) -> Ints:
        value: Ints = data[end - before_end].astype(np.int64) - 48
        for k in range(1, count):
            value = value * 10 + data[end - before_end + k] - 48
        return value

    negative = data[start] == ord("-")
    hours = digits(tail + 2, 2)
    long = (end - start - negative) > tail + 2
    hours[long] += (data[end[long] - tail - 3].astype(np.int64) - 48) * 100
    micros = (hours * 3600 + digits(tail - 1, 2) * 60 + digits(tail - 4, 2)) * MICROSECONDS_PER_SECOND
    if fraction:
        micros += digits(fraction, fraction) * 10 ** (6 - fraction)
    return fixed(np.where(negative, -micros, micros), pa.int64(), mask)


def _connect(values: Array, modes: Modes) -> Array:
    match modes.time_precision:
        case "isostring":
            return shortest_iso(numbers(values), valid(values), with_date=False)
        case "connect":
            return milliseconds(values)
        case "nanoseconds":
            return nanoseconds(values)
    return values


def _refused(values: Array, modes: Modes) -> Bools | None:
    """Return a mask of the values outside 0 to 24 hours: Connect's Time and ISO text are times of day."""
    if modes.time_precision not in ("connect", "isostring"):
        return None
    micros = numbers(values)
    return (micros < 0) | (micros > SECONDS_PER_DAY * MICROSECONDS_PER_SECOND)


TYPES: Family = {"time": _time}
