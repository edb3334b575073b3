"""TIME: in from both sources, out in every form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.errors import IncsnapError
from incsnap.tables import Column
from incsnap.types.modes import Modes
from tests.support.column_values import connected, decoded, default_of, encoded, parsed, schema_of

_LONGEST = (838 * 3600 + 59 * 60 + 59) * 10**6


@given(st.lists(st.none() | st.integers(-_LONGEST, _LONGEST)), st.integers(0, 6))
def test_times_are_signed_microseconds(values: list[int | None], fraction: int) -> None:
    step = 10 ** (6 - fraction)
    values = [None if v is None else (abs(v) // step * step) * (1 if v >= 0 else -1) for v in values]
    texts: list[str | None] = []
    for value in values:
        if value is None:
            texts.append(None)
            continue
        seconds, micros = divmod(abs(value), 10**6)
        text = f"{'-' if value < 0 else ''}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        texts.append(text + (f".{micros:06d}"[: fraction + 1] if fraction else ""))
    assert parsed(Column("c", "time", fraction=fraction), texts) == values
    assert decoded(Column("c", "time", fraction=fraction), [_stored(v, fraction) for v in values]) == values


def _stored(value: int | None, fraction: int) -> bytes | None:
    """Return a TIME as MySQL stores it: one signed number of integer part and fraction, plus an offset."""
    if value is None:
        return None
    seconds, micros = divmod(abs(value), 10**6)
    size = (fraction + 1) // 2
    part = micros // 100 ** (3 - size)
    number: int = (seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60) << 8 * size | part
    return ((0x800000 << 8 * size) + (-number if value < 0 else number)).to_bytes(3 + size, "big")


@pytest.mark.parametrize(
    ("mode", "value", "schema"),
    [
        ("adaptive_time_microseconds", 45_296_789_012, ("int64", "MicroTime", {})),
        ("microseconds", 45_296_789_012, ("int64", "MicroTime", {})),
        ("nanoseconds", 45_296_789_012_000, ("int64", "NanoTime", {})),
        ("connect", 45_296_789, ("int32", "Time", {})),
        ("isostring", "12:34:56.789012Z", ("string", "IsoTime", {})),
    ],
)
def test_times_follow_their_mode(mode: str, value: Any, schema: Any) -> None:
    column, modes = Column("c", "time", fraction=6), Modes(time_precision=mode)
    values = [45_296_789_012, None]
    assert connected(column, values, modes) == encoded(column, values, modes) == [value, None]
    assert schema_of(column, time_precision=mode) == schema
    assert default_of(column, "12:34:56.789012", time_precision=mode) == value


@pytest.mark.parametrize("mode", ["connect", "isostring"])
def test_times_outside_of_a_day_are_null_in_some_modes(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    modes, column = Modes(time_precision=mode), Column("c", "time")
    forms = connected(column, [0, 86_400_000_000, -1, 86_400_000_001, None], modes)
    assert [value is None for value in forms] == [False, False, True, True, True]
    assert "shop.orders: column c (TIME) holds 2 values" in caplog.text
    strict = Column("c", "time", nullable=False)
    for refusing, with_mode in ((strict, modes), (column, Modes(time_precision=mode, converting="fail"))):
        with pytest.raises(IncsnapError, match=r"shop\.orders: column c .* cannot express") as caught:
            connected(refusing, [0, -1], with_mode)
        assert "time.precision.mode" in caught.value.hint
