"""The scan's primitives and the gathers, on packets made by hand."""

from __future__ import annotations

import random
import struct
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from incsnap.columns import gather
from incsnap.columns.calendar import days
from incsnap.columns.cursors import lenenc, lenenc_columns, prefixed_lengths
from incsnap.columns.decimals import decimal_type
from incsnap.columns.packed_decimal import groups, packed_decimals, packed_size
from incsnap.columns.packets import PAD, Packets, Spans
from tests.support.packets import lenenc_string, packed_decimal
from tests.support.spans import spans_of


def test_lenenc_reads_every_width_of_length_and_nulls() -> None:
    values = [b"", None, b"a", b"b" * 250, b"c" * 251, b"d" * 65535, b"e" * 65536, None, b"f" * (1 << 24)]
    payload = b"".join(lenenc_string(value) for value in values)
    starts = np.cumsum([0, *(len(lenenc_string(value)) for value in values)])
    spans, behind = lenenc(Packets.of(payload), starts[:-1])
    assert behind.tolist() == starts[1:].tolist()
    assert gather.binary(spans).to_pylist() == values


def test_lenenc_columns_of_all_rows_are_read_together() -> None:
    rows: list[list[bytes | None]] = [[b"1", None, b"x" * 300], [b"", b"two", b"y"], [None, None, None]]
    packets = [b"".join(map(lenenc_string, row)) for row in rows]
    starts = np.cumsum([0, *map(len, packets)])
    columns, behind = lenenc_columns(Packets.of(b"".join(packets)), starts[:-1], 3)
    assert behind.tolist() == starts[1:].tolist()
    assert [list(row) for row in zip(*(gather.binary(c).to_pylist() for c in columns), strict=True)] == rows


def test_a_damaged_length_moves_the_cursor_behind_the_end_and_reads_nothing_outside() -> None:
    packets = Packets.of(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff")
    _, behind = lenenc(packets, np.array([0, 1, 8, 9, 1 << 40]))
    assert (behind[[0, 2]] > packets.size).all()
    assert (behind >= [0, 1, 8, 9, 1 << 40]).all()


@pytest.mark.parametrize("prefix", [1, 2, 3, 4])
def test_prefixed_lengths_are_read_from_any_place(prefix: int) -> None:
    sizes = [3, 0, 200, 1]
    stored = [size.to_bytes(prefix, "little") + bytes([255]) * size for size in sizes]
    starts = np.cumsum([0, *map(len, stored)])
    assert prefixed_lengths(Packets.of(b"".join(stored)), starts[:-1], prefix).tolist() == sizes


@pytest.mark.parametrize("width", range(1, 9))
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("signed", [True, False])
def test_integers_of_every_width_are_gathered_from_any_place(width: int, order: str, signed: bool) -> None:
    source = random.Random(width)
    low, high = (-(1 << 8 * width - 1), (1 << 8 * width - 1) - 1) if signed else (0, (1 << 8 * width) - 1)
    numbers = [low, high, 0, 1, *(source.randint(low, high) for _ in range(50))]
    raw = [number.to_bytes(width, "little" if order == "little" else "big", signed=signed) for number in numbers]
    gathered = gather.integers(spans_of(list(raw)), width, signed=signed, big=order == "big")
    assert gathered.tolist() == numbers


def test_floats_are_gathered_exactly() -> None:
    numbers = [0.0, -0.0, 1.5, float("inf"), 5e-324]
    assert gather.floats(spans_of([struct.pack("<d", n) for n in numbers]), 8).tolist() == numbers
    assert gather.floats(spans_of([struct.pack("<f", n) for n in numbers[:4]]), 4).tolist() == numbers[:4]


def test_what_stands_under_a_null_is_zero() -> None:
    array = gather.primitive(np.array([1, 2, 3]), np.array([True, False, True]), pa.int64())
    assert array.to_pylist() == [1, None, 3]
    assert np.frombuffer(array.buffers()[1], np.int64).tolist() == [1, 0, 3]


def test_byte_strings_of_every_length_become_views_and_copies() -> None:
    values: list[bytes | None] = [None if n % 7 == 3 else bytes(range(n)) for n in range(60)]
    spans = spans_of(values)
    assert gather.views(spans).cast(pa.binary()).to_pylist() == values
    gather.views(spans).validate(full=True)
    gather.binary(spans).validate(full=True)


def test_a_block_is_offered_in_several_buffers_where_offsets_do_not_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "_VIEW_BUFFER_BITS", 10)
    values: list[bytes | None] = [bytes([n % 251]) * (n % 97) for n in range(200)]
    views = gather.views(spans_of(values))
    assert len(views.buffers()) > 5
    assert views.cast(pa.binary()).to_pylist() == values


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        gather.text(spans_of([b"good", b"\xff\xfe"]))


def test_short_binaries_are_filled_with_zeros() -> None:
    values = pa.array([b"", None, b"abc", b"abcde", b"abcdef"], pa.binary())
    assert gather.zero_filled(values, 5).to_pylist() == [b"\0" * 5, None, b"abc\0\0", b"abcde", b"abcdef"]


def test_an_empty_column_is_an_empty_array() -> None:
    nothing = Spans(Packets.of(b""), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert gather.binary(nothing).to_pylist() == []
    assert packed_decimals(nothing, 65, 30).to_pylist() == []
    assert gather.zero_filled(gather.binary(nothing), 4).to_pylist() == []


def test_packets_are_padded_once() -> None:
    packets = Packets.of(memoryview(b"abc"))
    assert (packets.size, len(packets.data)) == (3, 3 + PAD)
    assert Packets.of(packets) is packets
    assert packets.words[packets.size] == 0


@pytest.mark.parametrize(("precision", "scale"), [(p, s) for p in range(1, 66, 4) for s in (0, min(p, 5), min(p, 30))])
def test_packed_decimals_of_every_precision(precision: int, scale: int) -> None:
    source = random.Random(precision * 100 + scale)
    most = 10**precision - 1
    numbers = [0, 1, -1, most, -most, *(source.randint(-most, most) >> source.randrange(200) for _ in range(40))]
    stored: list[bytes | None] = [packed_decimal(number, precision, scale) for number in numbers]
    assert {len(raw) for raw in stored if raw} == {packed_size(precision, scale)}
    decimals = packed_decimals(spans_of([*stored, None]), precision, scale)
    decimals.validate(full=True)
    assert decimals.type == decimal_type(precision, scale)
    expected = [Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale)) for number in numbers]
    assert decimals.to_pylist() == [*expected, None]


def test_a_group_of_more_than_its_digits_is_damaged() -> None:
    assert groups(12, 2) == [1, 9, 2]
    raw = bytearray(packed_decimal(0, 12, 2))
    raw[-1] = 100
    with pytest.raises(ValueError, match="2 decimal digits"):
        packed_decimals(spans_of([bytes(raw)]), 12, 2)


def test_days_agree_with_the_standard_library() -> None:
    dates = [date(1970, 1, 1) + timedelta(n) for n in range(-719162, 2932896, 97)]
    parts = [np.array([getattr(day, part) for day in dates], np.int64) for part in ("year", "month", "day")]
    count, valid = days(*parts)
    assert valid.all()
    assert count.tolist() == [(day - date(1970, 1, 1)).days for day in dates]


@pytest.mark.parametrize(
    "day",
    [
        (0, 1, 1),
        (2024, 0, 1),
        (2024, 1, 0),
        (2023, 2, 29),
        (1900, 2, 29),
        (2024, 4, 31),
        (2024, 13, 1),
        (2024, 15, 1),
        (10000, 1, 1),
        (-5, 1, 1),
    ],
)
def test_what_is_no_date_is_told(day: tuple[int, int, int]) -> None:
    _, valid = days(*(np.array([part]) for part in day))
    assert not valid.any()
