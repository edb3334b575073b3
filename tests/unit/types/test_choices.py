"""ENUM and SET."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incsnap.columns.images import Field
from incsnap.tables import Column
from incsnap.types.column_type import describe
from tests.support.column_values import TABLE, decoded, default_of, encoded, parsed, schema_of

SIZE = Column("c", "enum", charset="utf8mb4", values=("small", "é"))
COLOURS = Column("c", "set", charset="utf8mb4", values=("red", "", "blue"))


def test_an_enum_is_the_number_of_its_literal() -> None:
    assert decoded(SIZE, [b"\x01", b"\x02", b"\x00", None], meta=1) == ["small", "é", "", None]
    assert decoded(SIZE, [b"\x02\x00", None], meta=2) == parsed(SIZE, ["é", None]) == ["é", None]
    assert describe(SIZE, TABLE).field(2) == Field(2)
    with pytest.raises(IndexError):
        decoded(SIZE, [b"\x03"], meta=1)


def test_a_set_has_a_bit_for_each_literal() -> None:
    stored = [b"\x05", b"\x00", b"\x06", b"\x01", None]
    # No comma before the first text, which an empty literal is not.
    assert decoded(COLOURS, stored, meta=1) == ["red,blue", "", "blue", "red", None]
    assert decoded(COLOURS, [b"\x04" + bytes(7)], meta=8) == ["blue"]
    with pytest.raises(ValueError, match="3 literals holds bit 4"):
        decoded(COLOURS, [b"\x08"], meta=1)


def test_the_allowed_values_are_in_the_schema() -> None:
    column = Column("c", "enum", charset="utf8mb4", values=("a,b", "it's", "back\\slash", "😀"))
    assert schema_of(column) == ("string", "Enum", {"allowed": "a\\,b,it's,back\\slash,?"})
    assert schema_of(Column("c", "set", charset="utf8mb4", values=("a", "b"))) == (
        "string",
        "EnumSet",
        {"allowed": "a,b"},
    )


def test_literals_are_strings_in_json_and_as_a_default() -> None:
    assert encoded(SIZE, ['"', "é", None]) == ['"', "é", None]
    assert default_of(SIZE, "small") == "small"
    assert default_of(COLOURS, "red,blue") == "red,blue"


def test_a_literal_that_is_no_text_is_empty_by_select_as_in_the_binlog() -> None:
    raw = pa.array([b"\xff\xff", b"a", None, b"\xff\xff"], pa.binary())
    assert describe(SIZE, TABLE).from_text(raw).to_pylist() == ["", "a", None, ""]
    raw = pa.array([b"red,\xff\xff,blue", b"\xff\xff,blue"], pa.binary())
    assert describe(COLOURS, TABLE).from_text(raw).to_pylist() == ["red,,blue", "blue"]
    assert decoded(COLOURS, [b"\x07", b"\x06"], meta=1) == ["red,,blue", "blue"]


def test_literals_may_be_binary() -> None:
    assert decoded(Column("c", "enum", charset="binary", values=("\xff",)), [b"\x01"], meta=1) == ["\xff"]
