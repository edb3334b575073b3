"""Keys of a list: their JSON, and the rows that they mean."""

from __future__ import annotations

from decimal import Decimal

import pytest

from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.listed_keys import KeyRefused, ListedKeys, key_text, read_key
from incsnap.envelope.table_format import TableFormat, table_format
from incsnap.tables import Column, TableId, TableShape
from incsnap.types.modes import Modes


def format_of(column: Column, modes: Modes = Modes()) -> TableFormat:  # noqa: B008 (a constant)
    return table_format(TableShape(TableId("shop", "t"), (column,), key=(0,)), "t", EnvelopeSettings("pre", "1", modes))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551615.000", "18446744073709551615"),
        ("1E+3", "1000"),
        ("-0.10", "-0.1"),
        ("1234567890.12345678901234567890123", "1234567890.12345678901234567890123"),
        ("-2.5E-7", "-0.00000025"),
    ],
)
def test_a_decimal_keeps_all_its_digits(value: str, text: str) -> None:
    assert key_text({"id": Decimal(value), "n": 1}) == f'{{"id":{text},"n":1}}'


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1E+999999999", "1E-999999999"])
def test_a_decimal_that_no_column_has_is_refused(value: str) -> None:
    with pytest.raises(KeyRefused, match="in a key is no number of MySQL"):
        key_text({"id": Decimal(value)})


@pytest.mark.parametrize("key", ["{", "[" * 100_000, '{"id":1e99999999999999999999}', b"\xff"])
def test_a_key_that_is_no_json_is_refused(key: str | bytes) -> None:
    with pytest.raises(KeyRefused, match="is not the JSON of a key"):
        read_key(key)


@pytest.mark.parametrize("given", [Decimal(2**53 + 1), 2**53 + 1])
def test_a_number_of_a_file_means_its_own_row(given: object) -> None:
    listed = ListedKeys.read(format_of(Column("id", "bigint", unsigned=True)), [key_text({"id": given})])

    assert listed.sql == [(str(2**53 + 1),)]


@pytest.mark.parametrize("given", ["5.6843418860808015E-14", "5.684341886080802E-14"])
def test_a_double_of_java_before_19_means_the_row_with_its_value(given: str) -> None:
    listed = ListedKeys.read(format_of(Column("id", "double")), [read_key(f'{{"id":{given}}}'.encode())])

    ((text,),) = listed.sql
    assert float(text or "") == float("5.684341886080802E-14")


@pytest.mark.parametrize("given", [2**64 - 1, -1, Decimal(2**64 - 1)])
def test_the_largest_numbers_have_a_signed_and_an_unsigned_form(given: object) -> None:
    listed = ListedKeys.read(format_of(Column("id", "bigint", unsigned=True)), [key_text({"id": given})])

    assert listed.sql == [(str(2**64 - 1),)]
    assert listed.texts() == ['{"id":-1}']


@pytest.mark.parametrize(
    ("column", "given"),
    [
        (Column("id", "bigint", unsigned=True), 2**64),
        (Column("id", "bigint", unsigned=True), 2**64 + 5),
        (Column("id", "bigint", unsigned=True), -(2**64)),
        (Column("id", "bigint", unsigned=True), Decimal("5.5")),
        (Column("id", "bigint"), 2**64 - 1),
    ],
)
def test_a_number_that_the_column_cannot_have_is_refused(column: Column, given: object) -> None:
    with pytest.raises(KeyRefused, match="is not as the record's key has it"):
        ListedKeys.read(format_of(column), [key_text({"id": given})])
