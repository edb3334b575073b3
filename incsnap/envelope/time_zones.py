"""Times in another time zone, as Debezium's TimezoneConverter writes them, a whole column at a time.

A DATETIME has no zone: it is taken for the local time of the zone, and written as the moment in UTC. A TIMESTAMP is
a text with its offset, and gets the zone's offset. Debezium takes this offset for the local time that has the digits of
the UTC time. This code does the same. So the offset is another than the zone's for some hours when clocks change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array
from incsnap.columns.variable import Ints

_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})(?::(\d{2}))?")
#: Names of schemas of times without a zone -> units in a second.
_UNITS = {
    "io.debezium.time.Timestamp": 1_000,
    "io.debezium.time.MicroTimestamp": 1_000_000,
    "io.debezium.time.NanoTimestamp": 1_000_000_000,
    "org.apache.kafka.connect.data.Timestamp": 1_000,
}
_ZONED = "io.debezium.time.ZonedTimestamp"
#: The years whose rules the time zone's files list. Later years have the rules of a year with the same calendar.
_FIRST, _LAST = 2010, 2037
_DAY = 86_400


def converter(schema_name: str | None, zone: str) -> Callable[[Array], Array] | None:
    """Return the function that puts values of the schema into the time zone; None if they are no such times."""
    if schema_name == _ZONED:
        return lambda values: _zoned(values, zone)
    units = _UNITS.get(schema_name or "")
    return None if units is None else lambda values: _moments(values, zone, units)


def offset_of(zone: str) -> int | None:
    """Return the seconds of an offset such as +05:30; None for the name of a zone."""
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
    return (3_600 * hours + 60 * minutes + seconds) * (-1 if match[1] == "-" else 1)


def _moments(values: Array, zone: str, units: int) -> Array:
    """Return local times as moments in UTC. `units`: how many are a second."""
    local = values.cast(pa.int64()).fill_null(0).to_numpy()
    moments = local - _offsets(local // units, zone) * units
    return pc.if_else(values.is_valid(), pa.array(moments), pa.scalar(None, pa.int64()))


def _zoned(values: Array, zone: str) -> Array:
    """Return texts of times in UTC (`2024-01-01T00:00:00.5Z`) with the offset of the zone."""
    seconds = pc.strptime(pc.utf8_slice_codeunits(values, 0, 19), format="%Y-%m-%dT%H:%M:%S", unit="s")
    utc = seconds.cast(pa.int64()).fill_null(0).to_numpy()
    offsets = _offsets(utc, zone)
    local = pc.strftime(pa.array(utc + offsets).cast(pa.timestamp("s")), format="%Y-%m-%dT%H:%M:%S")
    # Zeros at the end of a fraction go, as Java writes it.
    fraction = pc.utf8_rtrim(pc.utf8_rtrim(pc.utf8_slice_codeunits(values, 19, -1), "0"), ".")
    distinct, place = np.unique(offsets, return_inverse=True)
    shown = pa.array([_shown(int(each)) for each in distinct.tolist()], pa.string()).take(pa.array(place))
    return pc.binary_join_element_wise(local, fraction, shown, "")


def _shown(offset: int) -> str:
    """Return an offset as text: +01:00, Z for none."""
    if not offset:
        return "Z"
    hours, rest = divmod(abs(offset), 3_600)
    minutes, seconds = divmod(rest, 60)
    return f"{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}" + (f":{seconds:02}" if seconds else "")


def _offsets(local: Ints, zone: str) -> Ints:
    """Return the offset from UTC of each local time, in seconds.

    `local`: seconds since 1970. A time that two offsets have, when clocks are set back, has the earlier one. A time
    that is left out, when they are set forward, has the one before.
    """
    fixed = offset_of(zone)
    if fixed is not None:
        return np.full(len(local), fixed, np.int64)
    times = pa.array(_with_listed_years(local)).cast(pa.timestamp("s"))
    moments: Any = pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="earliest")
    # A time that is left out becomes the last second before the clocks change.
    wall = pc.local_timestamp(moments).cast(pa.int64()).to_numpy()
    offsets: Ints = wall - moments.cast(pa.int64()).to_numpy()
    return offsets


def _with_listed_years(local: Ints) -> Ints:
    """Return the times, those of years behind `_LAST` in a listed year with the same calendar."""
    years = local.astype("datetime64[s]").astype("datetime64[Y]").astype(np.int64) + 1970
    late = years > _LAST
    if not late.any():
        return local
    asked = np.unique(years[late])
    listed = np.array([_same_calendar(int(year)) for year in asked.tolist()])
    shift = _first_second(listed) - _first_second(asked)
    moved = local.copy()
    moved[late] += shift[np.searchsorted(asked, years[late])]
    return moved


def _same_calendar(year: int) -> int:
    """Return the listed year that begins on the same day of the week, and is a leap year if `year` is one."""

    def calendar(each: int) -> tuple[int, int]:
        begin, end = (int(_first_second(np.array([nth]))[0]) // _DAY for nth in (each, each + 1))
        return begin % 7, end - begin

    return next(each for each in range(_FIRST, _LAST + 1) if calendar(each) == calendar(year))


def _first_second(years: Ints) -> Ints:
    """Return the first second of each year, since 1970."""
    seconds: Ints = (years - 1970).astype("datetime64[Y]").astype("datetime64[s]").astype(np.int64)
    return seconds
