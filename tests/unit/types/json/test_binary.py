"""Binary JSON made by hand; real documents are compared with a server in tests/integration/test_row_images.py."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.types.json.binary import decimal_text, double_text, json_text
from tests.support.packets import packed_decimal


def small_array(*entries: bytes, tail: bytes = b"") -> bytes:
    """A document: entries of a type byte and two bytes, then the values that they point at."""
    body = b"".join(entries) + tail
    return b"\x02" + struct.pack("<HH", len(entries), 4 + len(body)) + body


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (0.1, "0.1"), (1e14, "100000000000000.0"), (1e15, "1e15"),
     (1e-15, "0.000000000000001"), (1e-16, "1e-16"), (1.5e300, "1.5e300"), (5e-324, "5e-324"),
     (4311915534309327.5, "4311915534309327.5"), (9007199254740992.0, "9.007199254740992e15")],
)  # fmt: skip
def test_doubles_are_printed_as_the_server_does(number: float, text: str) -> None:
    assert double_text(number) == text


@given(st.integers(-(10**65) + 1, 10**65 - 1), st.sampled_from([(1, 0), (5, 5), (12, 2), (19, 3), (65, 30)]))
def test_decimals_have_all_digits_of_their_scale(number: int, kind: tuple[int, int]) -> None:
    precision, scale = kind
    unscaled = abs(number) % 10**precision
    digits = f"{unscaled:0{scale + 1}d}"
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
    text = whole + (f".{fraction}" if scale else "")
    assert decimal_text(packed_decimal(unscaled, precision, scale), precision, scale) == text
    if unscaled:
        assert decimal_text(packed_decimal(-unscaled, precision, scale), precision, scale) == "-" + text


def test_an_empty_document_is_null() -> None:
    assert json_text(b"") == "null"


def test_values_stand_in_the_table_or_behind_it() -> None:
    document = small_array(b"\x04\x01\x00", b"\x05\xff\xff", b"\x0c\x0d\x00", tail=b"\x02hi")
    assert json_text(document) == '[true,-1,"hi"]'


def test_an_object_has_its_keys_in_stored_order() -> None:
    document = b"\x00" + struct.pack("<HHHHHHBHBH", 2, 20, 18, 1, 19, 1, 4, 0, 6, 7) + b"ba"
    assert json_text(document) == '{"b":null,"a":7}'


def test_strings_are_escaped_as_the_server_does() -> None:
    assert json_text(b'\x0c\x07"\\\n\x01\x7f\xc3\xa9') == '"\\"\\\\\\n\\u0001\x7fé"'


def test_opaque_values_of_unknown_types_are_base64() -> None:
    assert json_text(b"\x0f\xfc\x02bl") == '"base64:type252:Ymw="'


@pytest.mark.parametrize(
    "document",
    [
        b"\x0d",
        b"\x04\x09",
        b"\x0c\x05ab",
        b"\x0c\xff\xff\xff\xff\xff\xff",
        b"\x0b\x00",
        b"\x0f\xf6\x00",
        b"\x0f\xf6\x03\x05\x02\x80",
        b"\x0f\x0a\x01a",
        b"\x0b" + struct.pack("<d", float("nan")),
        # A container whose values point back at itself: wide, then deep.
        small_array(*[b"\x02\x00\x00"] * 200),
        small_array(b"\x02\x00\x00", tail=bytes(5000)),
        b"\x03" + struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF),
    ],
)
def test_damaged_documents_are_refused_at_once(document: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - struct and unicode errors are translated; the text varies
        json_text(document)
