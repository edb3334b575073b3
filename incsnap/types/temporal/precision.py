"""The forms of DATE, TIME and DATETIME under `time.precision.mode`, as far as the three types share them.

    mode                          DATE                    TIME         DATETIME
    adaptive_time_microseconds    days                    µs           ms up to 3 digits of fraction, else µs
    microseconds, nanoseconds     days                    µs, ns       µs, ns
    connect                       days                    ms           ms
    isostring                     2024-01-02Z             03:04:05.6Z  2024-01-02T03:04:05.6Z

ISO text has as many digits of fraction as the value needs. TIMESTAMP is text in UTC in all modes, with exactly the
column's digits of fraction.

A null in a NOT NULL column was a zero date; Debezium writes the epoch for it. Years of two digits are moved into 1970
to 2069 unless `Modes.time_adjuster` is off.
https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-temporal-types
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, IntArray
from incsnap.columns.variable import Ints, fixed, valid
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema
from incsnap.types.modes import Modes

DEBEZIUM, CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
#: Days since 1970-01-01 of the first day of the years 70 and 100; days by which years below 70 and below 100 move.
_YEAR_70, _YEAR_100, _2000_YEARS, _1900_YEARS = -693_960, -683_003, 730_485, 693_960


def form(type_: str, name: str, nullable: bool) -> Schema:
    """Return the Connect schema with a logical name, for example `io.debezium.time.Date`.

    All these schemas have version 1.
    """
    return Schema(type_, nullable, name, 1)


def unescaped(connect: Callable[[Array, Modes], Array]) -> Callable[[Array, Modes], Encoded]:
    """Return the `encode` function of a type whose `connect` function returns ISO text or numbers.

    Neither needs escaping in JSON.
    """

    def encode(array: Array, modes: Modes) -> Encoded:
        values = connect(array, modes)
        quoted = pa.types.is_string(values.type)
        return Encoded(values if quoted else values.cast(pa.string()), quoted)

    return encode


def milliseconds(micros: IntArray) -> Array:
    """Return microseconds as milliseconds, rounded down.

    NumPy rounds down, Arrow's divide rounds towards zero. Before 1970 only rounding down is right.
    """
    return fixed(numbers(micros) // 1000, pa.int64(), valid(micros))


def nanoseconds(micros: IntArray) -> Array:
    """Return microseconds as nanoseconds."""
    return fixed(numbers(micros) * 1000, pa.int64(), valid(micros))


def epoch_for_zero_dates(values: Array, nullable: bool) -> Array:
    """Return the values, with 0 (the epoch) for the null of a zero date if the column is NOT NULL."""
    return values if nullable or not values.null_count else values.fill_null(0)


def adjusted_years(values: Array, day: int, modes: Modes) -> Array:
    """Return the values with years of two digits moved into 1970 to 2069, unless the modes keep them.

    The values are days (`day` is 1) or microseconds (`day` is a day's microseconds).
    """
    first = pc.min(values).as_py()
    if first is None or first >= _YEAR_100 * day or modes.time_adjuster == "false":
        return values
    moments = numbers(values)
    years = np.where(moments < _YEAR_70 * day, _2000_YEARS, np.where(moments < _YEAR_100 * day, _1900_YEARS, 0))
    return fixed(moments + years * day, pa.int64(), valid(values))


def numbers(values: Array) -> Ints:
    """Return the values as int64, 0 for null."""
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
