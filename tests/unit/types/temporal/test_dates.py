"""DATE: in from both sources, out in every form."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.tables import Column
from incsnap.types.modes import Modes
from tests.support.column_values import connected, decoded, default_of, encoded, parsed, schema_of

DATE = Column("c", "date")
EPOCH = dt.date(1970, 1, 1)


def stored(year: int, month: int, day: int) -> bytes:
    return (year << 9 | month << 5 | day).to_bytes(3, "little")


@given(st.lists(st.none() | st.dates(min_value=dt.date(1, 1, 1))))
def test_dates_are_days(values: list[dt.date | None]) -> None:
    expected = [None if v is None else (v - EPOCH).days for v in values]
    assert parsed(DATE, [None if v is None else v.isoformat() for v in values]) == expected
    assert decoded(DATE, [None if v is None else stored(v.year, v.month, v.day) for v in values]) == expected


@pytest.mark.parametrize("text", ["0000-00-00", "2024-00-10", "2024-10-00", "0000-10-10", "2023-02-29", "2024-04-31"])
def test_zero_partly_zero_and_impossible_dates_are_null(text: str) -> None:
    year, month, day = map(int, text.split("-"))
    assert parsed(DATE, [text, "2024-02-29"]) == [None, 19782]
    assert decoded(DATE, [stored(year, month, day), stored(2024, 2, 29)]) == [None, 19782]


@pytest.mark.parametrize(
    ("mode", "value", "schema"),
    [
        ("adaptive_time_microseconds", 19782, ("int32", "Date", {})),
        ("microseconds", 19782, ("int32", "Date", {})),
        ("nanoseconds", 19782, ("int32", "Date", {})),
        ("connect", 19782, ("int32", "Date", {})),
        ("isostring", "2024-02-29Z", ("string", "IsoDate", {})),
    ],
)
def test_dates_follow_their_mode(mode: str, value: Any, schema: Any) -> None:
    modes = Modes(time_precision=mode)
    assert connected(DATE, [19782, None], modes) == encoded(DATE, [19782, None], modes) == [value, None]
    assert schema_of(DATE, time_precision=mode) == schema


@pytest.mark.parametrize(("mode", "epoch"), [("adaptive_time_microseconds", 0), ("isostring", "1970-01-01Z")])
def test_a_zero_date_that_may_not_be_null_is_the_epoch(mode: str, epoch: Any) -> None:
    modes = Modes(time_precision=mode)
    assert connected(DATE, [None], modes) == [None]
    required = Column("c", "date", nullable=False)
    assert connected(required, [None], modes) == encoded(required, [None], modes) == [epoch]
    assert default_of(required, "0000-00-00", time_precision=mode) == epoch


def test_years_of_two_digits_are_moved_unless_that_is_off() -> None:
    texts = ["0001-01-01", "0004-02-29", "0069-12-31", "0070-01-01", "0096-02-29", "0099-12-31", "0100-01-01"]
    moved = ["2001-01-01", "2004-02-29", "2069-12-31", "1970-01-01", "1996-02-29", "1999-12-31", "0100-01-01"]
    days = [(dt.date.fromisoformat(text) - EPOCH).days for text in texts]
    assert connected(DATE, days, Modes(time_precision="isostring")) == [f"{text}Z" for text in moved]
    off = Modes(time_precision="isostring", time_adjuster="false")
    assert connected(DATE, days, off) == [f"{text}Z" for text in texts]


def test_a_default_is_a_date_or_nothing() -> None:
    assert default_of(DATE, "2024-02-29") == 19782
    assert default_of(DATE, "0000-00-00") is None
    assert default_of(DATE, "curdate()") is None
