"""DATETIME and TIMESTAMP: in from both sources, out in every form."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.errors import IncsnapError
from incsnap.tables import Column
from incsnap.types.modes import Modes
from tests.support.column_values import connected, decoded, default_of, encoded, parsed, schema_of


def micros(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


def _fraction(value: dt.datetime, fraction: int) -> bytes:
    size = (fraction + 1) // 2
    return (value.microsecond // 100 ** (3 - size)).to_bytes(size, "big") if size else b""


def _datetime(value: dt.datetime, fraction: int) -> bytes:
    clock = value.hour << 12 | value.minute << 6 | value.second
    number = (value.year * 13 + value.month) << 22 | value.day << 17 | clock
    return (0x8000000000 + number).to_bytes(5, "big") + _fraction(value, fraction)


@given(st.lists(st.none() | st.datetimes()), st.integers(0, 6))
def test_datetimes_are_microseconds(values: list[dt.datetime | None], fraction: int) -> None:
    texts: list[str | None] = []
    expected: list[int | None] = []
    stored: list[bytes | None] = []
    for value in values:
        if value is None:
            texts.append(None)
            expected.append(None)
            stored.append(None)
            continue
        step = 10 ** (6 - fraction)
        value = value.replace(microsecond=value.microsecond // step * step)
        text = value.isoformat(sep=" ", timespec="microseconds")
        texts.append(text[: 20 + fraction] if fraction else text[:19])
        expected.append(micros(text))
        stored.append(_datetime(value, fraction))
    for type_ in ("datetime", "timestamp"):
        assert parsed(Column("c", type_, fraction=fraction), texts) == expected
    assert decoded(Column("c", "datetime", fraction=fraction), stored) == expected


@given(st.lists(st.none() | st.integers(1, 2**32 - 1)), st.integers(0, 6))
def test_a_timestamp_is_seconds_in_the_binlog_and_0_is_the_zero_date(values: list[int | None], fraction: int) -> None:
    size = (fraction + 1) // 2
    stored = [None if value is None else value.to_bytes(4, "big") + bytes(size) for value in values]
    expected = [None if value is None else value * 10**6 for value in values]
    column = Column("c", "timestamp", fraction=fraction)
    assert decoded(column, [*stored, bytes(4 + size)]) == [*expected, None]


@pytest.mark.parametrize("text", ["0000-00-00", "2024-00-10", "2024-10-00", "0000-10-10", "2023-02-29", "2024-04-31"])
def test_zero_partly_zero_and_impossible_dates_are_null(text: str) -> None:
    year, month, day = map(int, text.split("-"))
    number = (year * 13 + month) << 22 | day << 17
    column = Column("c", "datetime", fraction=2)
    assert parsed(column, [text + " 00:00:00.00"]) == [None]
    assert decoded(column, [(0x8000000000 + number).to_bytes(5, "big") + b"\x00"]) == [None]


_T = "2024-02-29T12:34:56.789012"


@pytest.mark.parametrize(
    ("mode", "millis", "more", "names"),
    [
        ("adaptive_time_microseconds", 1709210096789, 1709210096789012, ("Timestamp", "MicroTimestamp")),
        ("microseconds", 1709210096789012, 1709210096789012, ("MicroTimestamp", "MicroTimestamp")),
        ("nanoseconds", 1709210096789012000, 1709210096789012000, ("NanoTimestamp", "NanoTimestamp")),
        ("connect", 1709210096789, 1709210096789, ("Timestamp", "Timestamp")),
        ("isostring", _T + "Z", _T + "Z", ("IsoTimestamp", "IsoTimestamp")),
    ],
)
def test_datetimes_follow_their_mode(mode: str, millis: Any, more: Any, names: tuple[str, str]) -> None:
    modes = Modes(time_precision=mode)
    for fraction, value, name in ((3, millis, names[0]), (6, more, names[1])):
        column = Column("c", "datetime", fraction=fraction)
        moments = [micros(_T), None]
        assert connected(column, moments, modes) == encoded(column, moments, modes) == [value, None]
        assert schema_of(column, time_precision=mode) == ("string" if mode == "isostring" else "int64", name, {})
    column = Column("c", "timestamp", fraction=2)
    assert connected(column, [micros(_T)], modes) == ["2024-02-29T12:34:56.78Z"]
    assert schema_of(column, time_precision=mode) == ("string", "ZonedTimestamp", {})


def test_a_datetime_is_milliseconds_up_to_three_digits_and_microseconds_beyond() -> None:
    values = [1_704_067_200_123_000, -1_000, None]
    assert encoded(Column("c", "datetime", fraction=3), values) == [1_704_067_200_123, -1, None]
    assert encoded(Column("c", "datetime", fraction=4), values) == values


@given(st.lists(st.none() | st.integers(micros("0100-01-01"), micros("9999-12-31")), max_size=8))
def test_iso_text_has_the_digits_it_needs(values: list[int | None]) -> None:
    texts = connected(Column("c", "datetime", fraction=6), values, Modes(time_precision="isostring"))
    for text, value in zip(texts, values, strict=True):
        if value is None:
            assert text is None
            continue
        assert micros(text[:-1]) == value
        assert text[-1] == "Z"
        assert "." not in text or text[-2] != "0"


@given(st.lists(st.none() | st.integers(0, 2**31 * 10**6), max_size=5), st.integers(0, 6))
def test_a_timestamp_has_its_columns_digits_of_fraction(values: list[int | None], fraction: int) -> None:
    step = 10 ** (6 - fraction)
    values = [None if v is None else v // step * step for v in values]
    expected: list[str | None] = []
    for value in values:
        if value is None:
            expected.append(None)
            continue
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)
        digits = f".{moment.microsecond:06d}"[: fraction + 1] if fraction else ""
        expected.append(f"{moment:%Y-%m-%dT%H:%M:%S}{digits}Z")
    assert encoded(Column("c", "timestamp", fraction=fraction), values) == expected


@pytest.mark.parametrize(
    ("mode", "epoch"), [("adaptive_time_microseconds", 0), ("isostring", "1970-01-01T00:00:00Z"), ("nanoseconds", 0)]
)
def test_a_zero_date_that_may_not_be_null_is_the_epoch(mode: str, epoch: Any) -> None:
    modes = Modes(time_precision=mode)
    assert connected(Column("c", "datetime", nullable=False), [None], modes) == [epoch]
    for fraction in (0, 3):
        column = Column("c", "timestamp", nullable=False, fraction=fraction)
        assert connected(column, [None], modes) == encoded(column, [None], modes) == ["1970-01-01T00:00:00Z"]
    assert [connected(Column("c", type_), [None], modes) for type_ in ("datetime", "timestamp")] == [[None], [None]]


def test_years_of_two_digits_are_moved_unless_that_is_off() -> None:
    texts = ["0001-01-01", "0004-02-29", "0069-12-31", "0070-01-01", "0096-02-29", "0099-12-31", "0100-01-01"]
    moved = ["2001-01-01", "2004-02-29", "2069-12-31", "1970-01-01", "1996-02-29", "1999-12-31", "0100-01-01"]
    column, values = Column("c", "datetime"), [micros(text) for text in texts]
    assert connected(column, values, Modes(time_precision="isostring")) == [f"{text}T00:00:00Z" for text in moved]
    off = Modes(time_precision="isostring", time_adjuster="false")
    assert connected(column, values, off) == [f"{text}T00:00:00Z" for text in texts]


def test_nanoseconds_of_a_distant_year_have_no_form(caplog: pytest.LogCaptureFixture) -> None:
    most = 2**63 // 1000
    modes, column = Modes(time_precision="nanoseconds"), Column("c", "datetime")
    assert connected(column, [most, -most, most + 1, None], modes) == [most * 1000, -most * 1000, None, None]
    assert "shop.orders: column c (DATETIME) holds 1 values" in caplog.text
    strict = Column("c", "datetime", nullable=False)
    for refusing, with_mode in ((strict, modes), (column, Modes(time_precision="nanoseconds", converting="fail"))):
        with pytest.raises(IncsnapError, match=r"shop\.orders: column c .* cannot express") as caught:
            connected(refusing, [most + 1], with_mode)
        assert "time.precision.mode" in caught.value.hint


@pytest.mark.parametrize("shown", ["CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP(3)", "now()"])
def test_the_moment_of_insertion_as_a_default_is_the_epoch(shown: str) -> None:
    for fraction in (0, 3, 6):
        assert default_of(Column("c", "datetime", fraction=fraction), shown) == 0
    assert default_of(Column("c", "timestamp", nullable=False), shown) == "1970-01-01T00:00:00Z"
    assert default_of(Column("c", "timestamp", nullable=False, fraction=3), shown) == "1970-01-01T00:00:00.000Z"
    assert default_of(Column("c", "timestamp"), shown) is None, "as in Debezium"


def test_a_default_is_a_moment_or_nothing() -> None:
    assert default_of(Column("c", "datetime"), "2024-02-29 12:34:56") == 1709210096000
    assert default_of(Column("c", "timestamp"), "2024-02-29 12:34:56") == "2024-02-29T12:34:56Z"
    assert default_of(Column("c", "datetime"), "0000-00-00 00:00:00") is None
    assert default_of(Column("c", "datetime"), "sysdate()") is None
