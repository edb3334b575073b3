"""The type DATE: days since 1970-01-01, null for a date that no calendar has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import Array, BytesArray
from incsnap.columns.calendar import days
from incsnap.columns.gather import integers, primitive
from incsnap.columns.packets import Spans
from incsnap.columns.variable import fixed, valid
from incsnap.tables import Column
from incsnap.types.definition import Family, TypeDefinition, fixed_width
from incsnap.types.modes import Modes
from incsnap.types.temporal.iso_text import iso_dates
from incsnap.types.temporal.packed import both, signed
from incsnap.types.temporal.precision import (
    CONNECT,
    DEBEZIUM,
    adjusted_years,
    epoch_for_zero_dates,
    form,
    numbers,
    unescaped,
)
from incsnap.types.temporal.printed import ZERO_DATE, characters, printed_days

_BYTES = 3
_DAYS = ("int32", DEBEZIUM + "Date")
_FORMS = {
    "adaptive_time_microseconds": _DAYS,
    "microseconds": _DAYS,
    "nanoseconds": _DAYS,
    "connect": ("int32", CONNECT + "Date"),
    "isostring": ("string", DEBEZIUM + "IsoDate"),
}


def _date(column: Column) -> TypeDefinition:
    def connect(values: Array, modes: Modes) -> Array:
        values = adjusted_years(epoch_for_zero_dates(values, column.nullable), 1, modes)
        if modes.time_precision == "isostring":
            return iso_dates(numbers(values), valid(values))
        return values.cast(pa.int64())

    return TypeDefinition(
        arrow=pa.int32(),
        field=fixed_width(_BYTES),
        decode=_decode,
        from_text=_from_text,
        schema=lambda modes: form(*_FORMS[modes.time_precision], column.nullable),
        connect_values=connect,
        json_texts=unescaped(connect),
        # The adjuster of years writes 0001-01-01 and 2001-01-01 alike.
        rounded=True,
        frame=lambda values: values.view(pa.date32()),
        frame_type=pa.date32(),
    )


def _decode(spans: Spans) -> pa.Array:
    """Return the days. DATE is little-endian, unlike all other times: year in 15 bits, month in 4, day in 5."""
    packed = signed(integers(spans, _BYTES, signed=False))
    count, real = days(packed >> 9, packed >> 5 & 15, packed & 31)
    return primitive(count.astype(np.int32), both(real, spans.valid), pa.int32())


def _from_text(raw: BytesArray) -> Array:
    count, real = printed_days(characters(raw, ZERO_DATE))
    return fixed(count.astype(np.int32), pa.int32(), real)


TYPES: Family = {"date": _date}
