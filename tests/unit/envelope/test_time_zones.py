"""Times in another time zone, as Java's rules of zones have them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incsnap.envelope.time_zones import converter

_TIMESTAMP, _ZONED = "io.debezium.time.Timestamp", "io.debezium.time.ZonedTimestamp"
_HOUR = 3_600_000


def local_ms(text: str) -> int:
    return int(pa.scalar(text).cast(pa.timestamp("ms")).cast(pa.int64()).as_py())


@pytest.mark.parametrize(
    ("zone", "local", "hours"),
    [
        ("Europe/Berlin", "2024-01-15 12:00:00", 1.0),
        ("Europe/Berlin", "2024-07-15 12:00:00", 2.0),
        # 02:30 is left out on this day, and comes twice on the other one.
        ("Europe/Berlin", "2024-03-31 02:30:00", 1.0),
        ("Europe/Berlin", "2024-10-27 02:30:00", 2.0),
        # The files of time zones list no year behind 2037.
        ("Europe/Berlin", "2500-07-15 12:00:00", 2.0),
        ("Europe/Berlin", "9999-12-31 23:59:59", 1.0),
        ("America/New_York", "2050-03-13 03:00:00", -4.0),
        ("America/New_York", "2050-03-13 01:59:59", -5.0),
        ("+05:30", "1000-01-01 00:00:00", 5.5),
        ("-11:00", "2024-07-15 12:00:00", -11.0),
    ],
)
def test_a_datetime_is_the_local_time_of_the_zone(zone: str, local: str, hours: float) -> None:
    convert = converter(_TIMESTAMP, zone)
    assert convert is not None
    ms = local_ms(local)
    moved = ms - round(hours * _HOUR)
    assert convert(pa.array([ms, None, ms], pa.int64())).to_pylist() == [moved, None, moved]


@pytest.mark.parametrize(
    ("zone", "text", "shown"),
    [
        ("Europe/Berlin", "2024-07-15T12:00:00.500Z", "2024-07-15T14:00:00.5+02:00"),
        ("Europe/London", "2024-01-15T12:00:00Z", "2024-01-15T12:00:00Z"),
        ("America/St_Johns", "2024-01-15T12:00:00.000Z", "2024-01-15T08:30:00-03:30"),
        ("+05:30", "2024-12-31T23:59:59.999999Z", "2025-01-01T05:29:59.999999+05:30"),
    ],
)
def test_a_timestamp_gets_the_offset_of_the_zone(zone: str, text: str, shown: str) -> None:
    convert = converter(_ZONED, zone)
    assert convert is not None
    assert convert(pa.array([text, None], pa.string())).to_pylist() == [shown, None]


def test_other_types_stay_as_they_are() -> None:
    assert converter("io.debezium.time.Date", "UTC") is None
    assert converter(None, "UTC") is None
