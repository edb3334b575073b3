"""BINARY, VARBINARY and BLOBs: the same bytes from both sources, text or bytes out."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.tables import BYTE_STRINGS, Column
from incsnap.types.modes import Modes
from tests.support.column_values import connected, decoded, default_of, encoded, parsed, schema_of

BLOB = Column("c", "blob", charset="binary")
byte_strings = st.lists(st.none() | st.binary(max_size=40))


@pytest.mark.parametrize("type_", sorted(BYTE_STRINGS - {"binary"}))
def test_bytes_are_what_they_are(type_: str) -> None:
    assert decoded(Column("c", type_, charset="binary"), [b"\x00\xff", b"", None], meta=2) == [b"\x00\xff", b"", None]


def test_binary_gets_its_trailing_zeros_back() -> None:
    assert decoded(Column("c", "binary", length=3, charset="binary"), [b"a", b"abc", None], meta=3) == [
        b"a\0\0",
        b"abc",
        None,
    ]


def test_bytes_follow_their_mode() -> None:
    raw = b"\xfb\xef\xff\x00"
    assert connected(BLOB, [raw, None]) == [raw, None]
    assert connected(BLOB, [raw], Modes(binary_handling="base64")) == ["++//AA=="]
    assert connected(BLOB, [raw], Modes(binary_handling="base64-url-safe")) == ["--__AA=="]
    assert connected(BLOB, [raw], Modes(binary_handling="hex")) == ["fbefff00"]
    assert schema_of(BLOB) == ("bytes", None, {})
    assert schema_of(BLOB, binary_handling="hex") == ("string", None, {})


@given(byte_strings)
def test_bytes_are_padded_base64_in_json(values: list[bytes | None]) -> None:
    expected = [None if v is None else base64.b64encode(v).decode() for v in values]
    for handling in ("bytes", "base64"):
        assert encoded(BLOB, values, Modes(binary_handling=handling)) == expected


@given(byte_strings)
def test_bytes_in_the_other_modes(values: list[bytes | None]) -> None:
    column = Column("c", "varbinary", charset="binary")
    url = [None if v is None else base64.urlsafe_b64encode(v).decode() for v in values]
    assert encoded(column, values, Modes(binary_handling="base64-url-safe")) == url
    digits = [None if v is None else v.hex() for v in values]
    assert encoded(column, values, Modes(binary_handling="hex")) == digits


def test_a_default_is_shown_in_hexadecimal_digits_or_as_text() -> None:
    assert parsed(BLOB, ["ab"]) == [b"ab"]
    varbinary, binary = Column("c", "varbinary", length=4), Column("c", "binary", length=4)
    assert default_of(varbinary, "0x6162FF", binary_handling="hex") == "6162ff"
    assert default_of(varbinary, "0x616", binary_handling="hex") == b"0x616".hex()
    assert default_of(binary, "ab", binary_handling="hex") == "61620000"
    assert default_of(binary, "0x6162") == base64.b64encode(b"ab\0\0").decode()
