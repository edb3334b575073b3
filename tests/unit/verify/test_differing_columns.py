"""The columns in which two rows differ."""

from __future__ import annotations

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
