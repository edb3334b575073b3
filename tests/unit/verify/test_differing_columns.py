"""The columns in which two rows differ."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from incsnap.tables import Column, TableId, TableShape
from incsnap.verify.both_sides import differing_columns
from incsnap.verify.proof import LastRecord, RowPlace
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.table_side import VerifiedTable

COLUMNS = (
    Column("f", "float"),
    Column("j", "json"),
    Column("n", "int"),
    Column("v", "vector"),
    Column("d", "decimal", precision=38, scale=17),
    Column("x", "double"),
    Column("p", "point"),
)
SHAPE = TableShape(TableId("shop", "t"), COLUMNS, (2,))
TABLE = VerifiedTable(SHAPE, "shop.t", 1, RecordForm(True, False, False))
#: The table if its DECIMAL is written as a DOUBLE.
WITH_DOUBLES = replace(TABLE, form=replace(TABLE.form, doubles=("d", "x")))


def columns_of(table: VerifiedTable, row: bytes, recorded: bytes, place: RowPlace | None = None) -> list[str]:
    """Return the columns in which a row differs from its record. `place`: of the record's event; None: of a snapshot"""
    return differing_columns(table, row, LastRecord(recorded, 0, 0, place=place))


@pytest.mark.parametrize(
    ("left", "right", "columns"),
    [
        (b'{"f":0.1}', b'{"f":0.1}', []),
        (b'{"f":123.456789}', b'{"f":123.457}', []),
        (b'{"f":123.456789}', b'{"f":123.458}', ["f"]),
        (b'{"f":3.4e38}', b'{"f":9.4e38}', ["f"]),
        (b'{"j":"{\\"a\\":1}"}', b'{"j":"{ \\"a\\": 1.0}"}', []),
        (b'{"j":"1"}', b'{"j":"{"}', ["j"]),
        (b'{"v":[0.1,2.0]}', b'{"v":[0.10000000149011612,2.0]}', []),
        (b'{"v":[0.1,2.0]}', b'{"v":[0.1,2.5]}', ["v"]),
        (b'{"v":[0.1,2.0]}', b'{"v":[0.1]}', ["v"]),
        (b'{"n":1,"f":null}', b'{"n":2,"f":null}', ["n"]),
        (b'{"n":1}', b'{"n":1,"f":null}', ["f"]),
        (b'{"n":1,"f":2}', b'{"n":1x,"f":2}', ["n", "f"]),
        (b'{"p":{"x":1.9999999999999998E23,"wkb":"AA=="}}', b'{"p":{"x":2.0E23,"wkb":"AA=="}}', []),
        (b'{"p":{"x":1.5,"wkb":"AA=="}}', b'{"p":{"x":1.25,"wkb":"AA=="}}', ["p"]),
        (b'{"p":{"x":1.5,"wkb":"AA=="}}', b'{"p":{"x":1.5,"wkb":"AQ=="}}', ["p"]),
    ],
)
def test_columns_differ_by_their_values(left: bytes, right: bytes, columns: list[str]) -> None:
    assert columns_of(TABLE, left, right) == columns


@pytest.mark.parametrize(("recorded", "of_an_event"), [("16777200", ["f"]), ("16777216.0", []), ("1.6777216E7", [])])
def test_a_float_of_six_digits_is_the_rows_only_in_a_record_of_a_snapshot(
    recorded: str, of_an_event: list[str]
) -> None:
    row, record = b'{"f":16777216}', f'{{"f":{recorded}}}'.encode()
    assert columns_of(TABLE, row, record) == []
    assert columns_of(TABLE, row, record, RowPlace(1, 100)) == of_an_event


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ('{"paid":1}', '{"paid":true}', False),
        ('{"n":0}', '{"n":false}', False),
        ("[1.0]", "[true]", False),
        ("[1]", '["1"]', False),
        ('{"a":1}', '{"a":1,"b":null}', False),
        ("[1,2]", "[1]", False),
        ("[]", "{}", False),
        ("1.00000000000000000001", "1.0", False),
        ("12345678901234567890.5", "12345678901234567890.25", False),
        ("9007199254740992", "9007199254740993", False),
        ("9007199254740992.0", "9007199254740993", False),
        ("1e400", "1e401", False),
        ('{"a": [1.50, "x"], "b": null}', '{"b":null,"a":[1.5,"x"]}', True),
        ("[1.0]", "[1]", True),
        # Debezium's binlog reader writes all digits of a DOUBLE that Java prints with an exponent.
        ("1e20", "100000000000000000000", True),
        ("1e-7", "0.00000009999999999999999547481118258862586856139387236908078193664550781250", True),
        # Java before 19 prints more digits than a DOUBLE needs.
        ("2e23", "2.0000000000000000E+23", True),
        ("2.0e-3", "2.0000000000000000416e-3", False),
        ("5.684341886080802e-14", "5.6843418860808015E-14", True),
    ],
)
def test_json_numbers_are_equal_only_by_their_exact_values(left: str, right: str, same: bool) -> None:
    rows = [json.dumps({"j": document}).encode() for document in (left, right)]
    for one, other in (rows, rows[::-1]):
        assert columns_of(TABLE, one, other) == ([] if same else ["j"])


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("123456789012345678.91", "123456789012345678.92", False),
        ("123456789012345678.91", "123456789012345678.910", True),
        # Both have 17 digits, and are nearest to the same DOUBLE.
        ("0.98765432109876511", "0.98765432109876512", False),
        ("0.12345678901234568", "123456789012345.68E-15", True),
        ("0.5", "0.50", True),
        ("1e400", "1e401", False),
        ("1e400", "1e999999999999999999", False),
        ("1e999999999999999999", "1e999999999999999999", True),
    ],
)
def test_decimals_that_are_numbers_are_compared_with_all_their_digits(left: str, right: str, same: bool) -> None:
    # The field `renamed` is no column: a transform has renamed a DECIMAL.
    for name in ("d", "renamed"):
        rows = [f'{{"{name}":{number}}}'.encode() for number in (left, right)]
        for one, other in (rows, rows[::-1]):
            assert columns_of(TABLE, one, other) == ([] if same else [name])


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("0.1", "0.1000000000000000055511151231257827", True),
        ("5.684341886080802e-14", "5.6843418860808015E-14", True),
        ("1e20", "100000000000000000000", True),
        ("0.1", "0.10000000000000002", False),
        ("1e400", "1e401", False),
        ("1e400", f"1{'0' * 400}", True),
        ("1.0", f"1{'0' * 400}", False),
        ("1.0", "1e999999999999999999", False),
    ],
)
def test_a_double_may_have_two_spellings(left: str, right: str, same: bool) -> None:
    for name in ("d", "x"):
        rows = [f'{{"{name}":{number}}}'.encode() for number in (left, right)]
        for one, other in (rows, rows[::-1]):
            assert columns_of(WITH_DOUBLES, one, other) == ([] if same else [name])


@pytest.mark.parametrize("number", ["1e400", "1e999999999999999999", "1e99999999999999999999"])
@pytest.mark.parametrize("name", ["f", "n", "d", "x", "v", "j"])
def test_a_number_of_any_size_differs_from_the_columns_own(name: str, number: str) -> None:
    own = {"v": "[1.5]", "j": json.dumps("1.5")}.get(name, "1.5")
    given = {"v": f"[{number}]", "j": json.dumps(number)}.get(name, number)
    assert columns_of(TABLE, f'{{"{name}":{own}}}'.encode(), f'{{"{name}":{given}}}'.encode()) == [name]
