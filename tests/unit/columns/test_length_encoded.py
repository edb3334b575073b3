"""Length-encoded integers, one at a time."""

from __future__ import annotations

import pytest

from incsnap.columns.length_encoded import length_encoded
from tests.support.packets import lenenc_integer


@pytest.mark.parametrize("number", [0, 250, 251, 0xFFFF, 0x10000, 0xFFFFFF, 0x1000000, 2**64 - 1])
def test_a_number_of_every_width_is_read_with_its_end(number: int) -> None:
    raw = lenenc_integer(number)
    assert length_encoded(b"?" + raw + b"behind", 1) == (number, 1 + len(raw))
    assert length_encoded(memoryview(raw), 0) == (number, len(raw))


@pytest.mark.parametrize(
    ("raw", "why"),
    [(b"", "early"), (b"\xfc\x01", "early"), (b"\xfe" + bytes(7), "early"), (b"\xfb", "0xfb"), (b"\xff", "0xff")],
)
def test_what_is_no_number_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        length_encoded(raw, 0)
