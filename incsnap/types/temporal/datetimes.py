"""The types DATETIME (without a zone) and TIMESTAMP (UTC): microseconds since 1970, null for a date that no calendar
has.

MySQL prints both alike, TIMESTAMP in a `+00:00` session. They differ in the binlog and in what Debezium makes of them.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import Array, BytesArray
from incsnap.columns.calendar import MICROSECONDS_PER_SECOND, SECONDS_PER_DAY, days
from incsnap.columns.gather import integers, primitive
from incsnap.columns.packets import Spans
from incsnap.columns.variable import Bools, fixed, valid
from incsnap.connect.schema import Schema
from incsnap.tables import Column
from incsnap.types.definition import Decode, Family, TypeDefinition, fixed_width
from incsnap.types.modes import Modes
from incsnap.types.temporal.iso_text import iso_moments, shortest_iso
from incsnap.types.temporal.packed import both, fraction_bytes, fraction_micros, signed
from incsnap.types.temporal.precision import (
    CONNECT,
    DEBEZIUM,
    adjusted_years,
    epoch_for_zero_dates,
    form,
    milliseconds,
    nanoseconds,
    numbers,
    unescaped,
)
from incsnap.types.temporal.printed import ZERO_DATE, characters, number, printed_days

_DATETIME_BYTES, _DATETIME_OFFSET = 5, 0x8000000000
_TIMESTAMP_BYTES = 4
_DAY_MICROS = SECONDS_PER_DAY * MICROSECONDS_PER_SECOND
#: The most microseconds whose nanoseconds fit an int64: 1677-09-21 to 2262-04-11.
_MOST_FOR_NANOS = (2**63 - 1) // 1000
_EPOCH_ISO = "1970-01-01T00:00:00Z"
_EPOCH, _MIDNIGHT = b"1970-01-01", b" 00:00:00"
_NOW = re.compile(r"(CURRENT_TIMESTAMP|NOW)(\(\d?\))?\Z", re.IGNORECASE)

_WITHOUT_ZONE, _IN_UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
_MILLIS, _MICROS = ("int64", DEBEZIUM + "Timestamp"), ("int64", DEBEZIUM + "MicroTimestamp")
#: time.precision.mode -> schema for columns with up to 3 digits of fraction, and schema for columns with more.
_FORMS = {
    "adaptive_time_microseconds": (_MILLIS, _MICROS),
    "microseconds": (_MICROS, _MICROS),
    "nanoseconds": (("int64", DEBEZIUM + "NanoTimestamp"),) * 2,
    "connect": (("int64", CONNECT + "Timestamp"),) * 2,
    "isostring": (("string", DEBEZIUM + "IsoTimestamp"),) * 2,
}


def _datetime(column: Column) -> TypeDefinition:
    fine = column.fraction > 3

    def connect(values: Array, modes: Modes) -> Array:
        values = adjusted_years(epoch_for_zero_dates(values, column.nullable), _DAY_MICROS, modes)
        match modes.time_precision:
            case "isostring":
                return shortest_iso(numbers(values), valid(values), with_date=True)
            case "microseconds":
                return values
            case "nanoseconds":
                return nanoseconds(values)
            case "adaptive_time_microseconds" if fine:
                return values
        return milliseconds(values)

    return TypeDefinition(
        arrow=pa.int64(),
        field=fixed_width(_DATETIME_BYTES + fraction_bytes(column)),
        decode=_decode_datetime(fraction_bytes(column)),
        from_text=lambda raw: _from_text(raw, column.fraction),
        schema=lambda modes: form(*_FORMS[modes.time_precision][fine], column.nullable),
        connect_values=connect,
        json_texts=unescaped(connect),
        inexpressible=_refused,
        # Milliseconds round values, and the adjuster of years writes two years alike.
        rounded=True,
        printed_default=lambda text: _default(text, column.fraction),
        frame=lambda values: values.view(_WITHOUT_ZONE),
        frame_type=_WITHOUT_ZONE,
    )


def _timestamp(column: Column) -> TypeDefinition:
    schema = Schema("string", column.nullable, DEBEZIUM + "ZonedTimestamp", 1)

    def connect(values: Array, _modes: Modes) -> Array:
        written = iso_moments(numbers(values), column.fraction, valid(values))
        return written if column.nullable or not written.null_count else written.fill_null(_EPOCH_ISO)

    def default(text: str) -> bytes | None:
        # Debezium shows no default of a nullable TIMESTAMP whose value is the present time.
        return None if column.nullable and _NOW.match(text) else _default(text, column.fraction)

    return TypeDefinition(
        arrow=pa.int64(),
        field=fixed_width(_TIMESTAMP_BYTES + fraction_bytes(column)),
        decode=_decode_timestamp(fraction_bytes(column)),
        from_text=lambda raw: _from_text(raw, column.fraction),
        schema=lambda _modes: schema,
        connect_values=connect,
        json_texts=unescaped(connect),
        printed_default=default,
        frame=lambda values: values.view(_IN_UTC),
        frame_type=_IN_UTC,
    )


def _decode_datetime(fraction: int) -> Decode:
    """Return the decoder of DATETIME with `fraction` bytes of fraction.

    A value has year * 13 + month in 17 bits, day in 5, hour in 5, minute in 6, second in 6, then the fraction.
    """

    def decode(spans: Spans) -> pa.Array:
        # The shift is unsigned, because with 6 digits the offset is the topmost of 64 bits.
        unsigned = integers(spans, _DATETIME_BYTES + fraction, signed=False, big=True)
        whole = signed(unsigned >> np.uint64(8 * fraction)) - _DATETIME_OFFSET
        year, month = np.divmod(whole >> 22, 13)
        count, real = days(year, month, whole >> 17 & 31)
        seconds = count * SECONDS_PER_DAY + (whole >> 12 & 31) * 3600 + (whole >> 6 & 63) * 60 + (whole & 63)
        micros = seconds * MICROSECONDS_PER_SECOND + fraction_micros(signed(unsigned), fraction)
        return primitive(micros, both(real, spans.valid), pa.int64())

    return decode


def _decode_timestamp(fraction: int) -> Decode:
    """Return the decoder of TIMESTAMP with `fraction` bytes of fraction.

    A value has the seconds since 1970 UTC in four bytes, then the fraction. 0 seconds are the zero date.
    """

    def decode(spans: Spans) -> pa.Array:
        packed = signed(integers(spans, _TIMESTAMP_BYTES + fraction, signed=False, big=True))
        seconds = packed >> 8 * fraction
        micros = seconds * MICROSECONDS_PER_SECOND + fraction_micros(packed, fraction)
        return primitive(micros, both(seconds != 0, spans.valid), pa.int64())

    return decode


def _printed(date: bytes, fraction: int) -> bytes:
    """Return midnight of a date, as a column with `fraction` digits of fraction prints it."""
    return date + _MIDNIGHT + (b"." + b"0" * fraction if fraction else b"")


def _from_text(raw: BytesArray, fraction: int) -> Array:
    text = characters(raw, _printed(ZERO_DATE, fraction))
    count, real = printed_days(text)
    seconds = number(text, 11, 2) * 3600 + number(text, 14, 2) * 60 + number(text, 17, 2)
    micros = (count.astype(np.int64) * SECONDS_PER_DAY + seconds) * MICROSECONDS_PER_SECOND
    if fraction:
        micros += number(text, 20, fraction).astype(np.int64) * 10 ** (6 - fraction)
    return fixed(micros, pa.int64(), real)


def _default(text: str, fraction: int) -> bytes:
    """Return the DEFAULT as printed. CURRENT_TIMESTAMP is the epoch, as in Debezium."""
    return _printed(_EPOCH, fraction) if _NOW.match(text) else text.encode()


def _refused(values: Array, modes: Modes) -> Bools | None:
    if modes.time_precision != "nanoseconds":
        return None
    return np.abs(numbers(adjusted_years(values, _DAY_MICROS, modes))) > _MOST_FOR_NANOS


TYPES: Family = {"datetime": _datetime, "timestamp": _timestamp}
