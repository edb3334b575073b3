"""The columns in which two rows differ."""

from __future__ import annotations

import json

import pytest

from incsnap.tables import Column, TableId, TableShape
from incsnap.verify.both_sides import differing_columns
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.table_side import VerifiedTable

SHAPE = TableShape(
    TableId("shop", "t"), (Column("f", "float"), Column("j", "json"), Column("n", "int"), Column("v", "vector")), (2,)
)
TABLE = VerifiedTable(SHAPE, "shop.t", 1, RecordForm(True, False, False))


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
    ],
)
def test_columns_differ_by_their_values(left: bytes, right: bytes, columns: list[str]) -> None:
    assert differing_columns(TABLE, left, right) == columns


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
        assert differing_columns(TABLE, one, other) == ([] if same else ["j"])
