"""Points and other geometries."""

from __future__ import annotations

import base64
import struct

import pyarrow as pa
import pytest

from incsnap.tables import Column
from incsnap.types.column_type import describe
from incsnap.types.modes import Modes
from tests.support.column_values import TABLE, connected, decoded

_POINT = b"\x01\x01\x00\x00\x00" + struct.pack("<dd", 1.5, -2)
_LINE = b"\x01\x02\x00\x00\x00" + struct.pack("<Idddd", 2, 0, 0, 1, 1)


def test_a_point_has_coordinates_and_another_geometry_only_bytes() -> None:
    point = Column("c", "point")
    values = [bytes(4) + _POINT, struct.pack("<I", 4326) + _POINT, None]
    assert decoded(point, values, meta=4) == values
    assert connected(point, values) == [
        {"x": 1.5, "y": -2.0, "wkb": _POINT, "srid": None},
        {"x": 1.5, "y": -2.0, "wkb": _POINT, "srid": 4326},
        None,
    ]
    line = Column("c", "linestring", nullable=False)
    assert connected(line, [struct.pack("<I", 3857) + _LINE]) == [{"wkb": _LINE, "srid": 3857}]
    assert describe(line, TABLE).schema(Modes()).optional
    assert not describe(Column("c", "point", nullable=False), TABLE).schema(Modes()).optional
    text = describe(point, TABLE).to_json(pa.array(values, pa.binary()), Modes()).to_pylist()
    assert text[0] == f'{{"x":1.5,"y":-2.0,"wkb":"{base64.b64encode(_POINT).decode()}","srid":null}}'
    assert text[2] == "null"


@pytest.mark.parametrize("raw", [b"", bytes(4), bytes(4) + _LINE, bytes(5) + _POINT, bytes(4) + b"\x00" + _POINT[1:]])
def test_a_point_that_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"geometry|POINT"):
        connected(Column("c", "point"), [raw])
    with pytest.raises(ValueError, match=r"geometry|POINT"):
        decoded(Column("c", "point"), [raw], meta=4)


def test_a_geometry_without_more_than_its_srid_is_refused() -> None:
    with pytest.raises(ValueError, match="without WKB"):
        decoded(Column("c", "polygon"), [bytes(4)], meta=4)
