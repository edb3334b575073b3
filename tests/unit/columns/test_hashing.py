"""Tests of the hashes of columns against slow ones, one value at a time."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pyarrow as pa
import pytest

from incsnap.columns.hashing import crc32, hash64, sorting, spans_of
from incsnap.columns.packets import PAD, Packets, Spans
from incsnap.columns.variable import variable

_MASK = (1 << 64) - 1


def slow_hash(value: bytes, seed: int) -> int:
    """Return what `hash64` returns for a value."""

    def finish(number: int) -> int:
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            number = (number ^ number >> 33) * factor & _MASK
        return number ^ number >> 33

    total = (len(value) * 0x9E3779B97F4A7C15 & _MASK) ^ seed
    for place in range(-(-len(value) // 8)):
        word = int.from_bytes(value[8 * place : 8 * place + 8], "little")
        total += finish(word ^ finish((place + 1 + seed) & _MASK))
    return finish(total & _MASK)


def random_values(seed: int) -> list[bytes | None]:
    """Return values of many lengths, some of them null."""
    chance = random.Random(seed)
    lengths = [chance.choice((0, 1, 7, 8, 9, 16, 63, 64, 200, 3_000)) for _ in range(200)]
    return [None if chance.random() < 0.1 else chance.randbytes(length) for length in lengths]


@pytest.mark.parametrize("seed", [0, 5, (1 << 63) + 11])
def test_values_have_the_hash_that_one_value_alone_has(seed: int) -> None:
    values = random_values(seed & 0xFF)
    column = pa.array([b"before", *values], pa.binary()).slice(1)

    assert hash64(column, seed).tolist() == [slow_hash(value or b"", seed) for value in values]


def test_equal_lengths_and_long_values_have_the_hash_that_one_value_alone_has() -> None:
    values = [bytes([number]) * 300_000 for number in range(3)]

    assert hash64(pa.array(values, pa.binary()), 3).tolist() == [slow_hash(value, 3) for value in values]


def test_spans_have_the_hashes_of_their_values() -> None:
    values = [value or b"" for value in random_values(2)]
    ends = np.cumsum([len(value) + 3 for value in values])
    starts = ends - [len(value) for value in values]
    packets = Packets.of(b"".join(b"abc" + value for value in values))

    hashes = hash64(Spans(packets, starts[::-1], np.array([*map(len, values[::-1])])), 7)

    assert hashes.tolist() == [slow_hash(value, 7) for value in values[::-1]]


@pytest.mark.parametrize("different", [1, 3, 1_000])
def test_equal_hashes_stay_in_their_order(different: int) -> None:
    hashes = np.random.default_rng(different).integers(0, different, 1_000).astype(np.uint64) << np.uint64(55)

    assert sorting(hashes).tolist() == sorted(range(1_000), key=lambda at: int(hashes[at]))


def test_each_bit_of_a_value_and_its_length_change_the_hash() -> None:
    value = bytes(40)
    others = [
        bytes(bytearray(value[:at]) + bytearray([1 << bit]) + value[at + 1 :]) for at in range(40) for bit in range(8)
    ]
    hashes = hash64(pa.array([value, *others, *(bytes(length) for length in range(40))], pa.binary()))

    assert len(set(hashes.tolist())) == 1 + 320 + 40


def test_changes_of_two_bits_do_not_cancel_each_other() -> None:
    bits = [1 << bit for bit in range(256)]
    values = [(one | other).to_bytes(32, "little") for one in bits for other in bits if one <= other]

    assert len(set(hash64(pa.array(values, pa.binary())).tolist())) == 256 * 257 // 2


def test_the_order_of_words_changes_the_hash() -> None:
    words = [b"11111111", b"22222222"]

    assert len(set(hash64(pa.array([b"".join(words), b"".join(words[::-1])], pa.binary())).tolist())) == 2


def test_a_column_without_values_has_no_hashes() -> None:
    assert len(hash64(pa.array([], pa.binary()))) == 0
    assert len(crc32(pa.array([], pa.binary()))) == 0


def test_crc32_is_that_of_zlib() -> None:
    values = random_values(1)

    assert crc32(pa.array(values, pa.binary())).tolist() == [zlib.crc32(value or b"") for value in values]


@pytest.mark.parametrize("padding", [0, PAD])
def test_spans_are_those_of_the_values_whatever_follows_them(padding: int) -> None:
    data = b"onetwo" + b"x" * padding
    column = variable(np.array([0, 3, 3, 6]), data, pa.binary(), np.array([True, False, True]))
    spans = spans_of(column.slice(1))

    assert spans.lengths.tolist() == [0, 3]
    assert bytes(spans.packets.data[int(spans.start[1]) :][:3]) == b"two"
    assert int(spans.packets.words[int(spans.start[1])]) & 0xFFFFFF == int.from_bytes(b"two", "little")
