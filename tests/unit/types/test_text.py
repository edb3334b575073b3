"""Texts: any character set in the binlog, UTF-8 in a SELECT, JSON strings out."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.columns.images import Field
from incsnap.tables import TEXTS, Column
from incsnap.types.column_type import describe
from tests.support.column_values import TABLE, connected, decoded, default_of, encoded, parsed, schema_of

NAME = Column("c", "varchar", charset="utf8mb4")


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))))
def test_text_reads_back_as_it_was(values: list[str | None]) -> None:
    assert parsed(NAME, values) == connected(NAME, values) == encoded(NAME, values) == values
    assert decoded(NAME, [None if value is None else value.encode() for value in values], meta=80) == values


@pytest.mark.parametrize("type_", sorted(TEXTS))
def test_the_binlog_has_the_columns_own_bytes(type_: str) -> None:
    column = Column("c", type_, charset="latin1")
    assert decoded(column, [b"caf\xe9", None], meta=2) == parsed(column, ["café", None]) == ["café", None]
    assert schema_of(column) == ("string", None, {})


def test_a_text_stands_behind_its_length() -> None:
    by_length, by_kind = describe(NAME, TABLE), describe(Column("c", "mediumtext", charset="utf8mb4"), TABLE)
    assert [by_length.field(meta) for meta in (255, 256)] == [Field(1, prefixed=True), Field(2, prefixed=True)]
    assert by_kind.field(3) == Field(3, prefixed=True)


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        decoded(NAME, [b"\xff"], meta=80)
    with pytest.raises(pa.ArrowInvalid):
        describe(NAME, TABLE).from_text(pa.array([b"\xff"], pa.binary()))


def test_a_default_is_its_own_text() -> None:
    assert default_of(NAME, 'it\'s "é"') == 'it\'s "é"'
