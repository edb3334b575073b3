"""What DATE, TIME and DATETIME share in the forms of ``time.precision.mode``.

    mode                          DATE                    TIME         DATETIME
    adaptive_time_microseconds    days                    µs           ms up to 3 digits of fraction, else µs
    microseconds, nanoseconds     days                    µs, ns       µs, ns
    connect                       days                    ms           ms
    isostring                     2024-01-02Z             03:04:05.6Z  2024-01-02T03:04:05.6Z

TIMESTAMP is text in UTC in all of them, with exactly the column's digits of fraction; ISO text has the digits it needs.
A value that is null although its column is NOT NULL was a zero date; Debezium writes the epoch for it. Years of two
digits are moved into 1970 to 2069 unless ``Modes.time_adjuster`` is off.
https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-temporal-types
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import Ints, fixed, valid
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema
from incsnap.types.modes import Modes

DEBEZIUM, CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
#: Days since 1970-01-01 of the first day of the years 70 and 100; days in 2000 and in (those) 1900 years.
_YEAR_70, _YEAR_100, _2000_YEARS, _1900_YEARS = -693_960, -683_003, 730_485, 693_960


def form(type_: str, name: str, nullable: bool) -> Schema:
    """The schema of a logical type; all of them have version 1."""
    return Schema(type_, nullable, name, 1)


def unescaped(connect: Callable[[Any, Modes], Any]) -> Callable[[Any, Modes], Encoded]:
    """The JSON of what ``connect`` gives: ISO text and numbers need no escaping."""

    def encode(array: Any, modes: Modes) -> Encoded:
        values = connect(array, modes)
        quoted = pa.types.is_string(values.type)
        return Encoded(values if quoted else values.cast(pa.string()), quoted)

    return encode


def milliseconds(micros: Any) -> Any:
    """NumPy rounds down where Arrow's divide rounds towards zero, and before 1970 only the former is right."""
    return fixed(numbers(micros) // 1000, pa.int64(), valid(micros))


def nanoseconds(micros: Any) -> Any:
    return fixed(numbers(micros) * 1000, pa.int64(), valid(micros))


def epoch_for_zero_dates(values: Any, nullable: bool) -> Any:
    return values if nullable or not values.null_count else values.fill_null(0)


def adjusted_years(values: Any, day: int, modes: Modes) -> Any:
    """The values, days or microseconds, ``day`` of them a day, with years of two digits moved."""
    first = pc.min(values).as_py()
    if first is None or first >= _YEAR_100 * day or modes.time_adjuster == "false":
        return values
    moments = numbers(values)
    years = np.where(moments < _YEAR_70 * day, _2000_YEARS, np.where(moments < _YEAR_100 * day, _1900_YEARS, 0))
    return fixed(moments + years * day, pa.int64(), valid(values))


def numbers(values: Any) -> Ints:
    """Gives int64, 0 for null."""
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
