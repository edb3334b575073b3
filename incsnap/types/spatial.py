"""The types POINT and all other geometries: byte strings in MySQL, structs in Connect.

MySQL stores a geometry as four bytes of SRID, little-endian, and then WKB, always little-endian.
https://dev.mysql.com/doc/refman/en/gis-data-formats.html
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import Array, BytesArray, StructArray
from incsnap.columns.gather import binary
from incsnap.columns.variable import Ints, bitmap, dense, fixed, valid, variable
from incsnap.connect.schema import Schema
from incsnap.tables import Column
from incsnap.types.definition import Family, TypeDefinition, blob_field, unchanged

#: The types of geometry columns; table map events have their indexes. `geometrycollection` is another name of the last.
GEOMETRIES = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
              "geomcollection")  # fmt: skip

_SRID = 4
_POINT = 21
#: Byte order (little-endian) and type of a point's WKB.
_POINT_BEGINS = np.frombuffer(b"\x01\x01\x00\x00\x00", np.uint8)
_X, _Y = len(_POINT_BEGINS), len(_POINT_BEGINS) + 8

_WKB = Schema("bytes")
_NUMBER = Schema("int32", optional=True)
_COORDINATE = Schema("float64")


def _geometry(column: Column) -> TypeDefinition:
    point = column.type == "point"
    schema = _schema(point, column.nullable)
    return TypeDefinition(
        arrow=pa.binary(),
        field=blob_field,
        decode=lambda spans: _checked(binary(spans), point),
        from_text=unchanged,
        schema=lambda _modes: schema,
        connect_values=lambda values, _modes: _connect(values, point),
        frame=lambda values: _connect(values, point).field("wkb"),
    )


def _schema(point: bool, nullable: bool) -> Schema:
    """Return the Connect schema.

    Debezium's Geometry is always optional; its Point is optional if the column is nullable.
    """
    fields: tuple[tuple[str, Schema], ...]
    if point:
        fields = (("x", _COORDINATE), ("y", _COORDINATE), ("wkb", _WKB.as_optional()), ("srid", _NUMBER))
        return Schema("struct", nullable, "io.debezium.data.geometry.Point", 1, doc="Geometry (POINT)", fields=fields)
    fields = (("wkb", _WKB), ("srid", _NUMBER))
    return Schema("struct", True, "io.debezium.data.geometry.Geometry", 1, doc="Geometry", fields=fields)


def _checked(values: Array, point: bool) -> BytesArray:
    """Return the values as they are.

    Raise ValueError if one of them is no point (`point`), or no geometry: it is damaged.
    """
    offsets, data = dense(values)
    mask = valid(values)
    lengths = np.diff(offsets) if mask is None else np.diff(offsets)[mask]
    if point:
        if (lengths != _SRID + _POINT).any() or (_points(data)[:, :_X] != _POINT_BEGINS).any():
            raise ValueError("a POINT that is no point")
    elif (lengths <= _SRID).any():
        raise ValueError("a geometry without WKB")
    return values


def _connect(values: Array, point: bool) -> StructArray:
    """Return structs with the fields x and y (points only), wkb and srid; srid is null if it is 0.

    Raise ValueError if a value is no such geometry.
    """
    _checked(values, point)
    mask = valid(values)
    offsets, data = dense(values)
    present = np.arange(len(values)) if mask is None else np.flatnonzero(mask)
    start = offsets[:-1].astype(np.int64)
    srid = np.zeros(len(values), np.int64)
    for byte in range(_SRID):
        srid[present] |= data[start[present] + byte].astype(np.int64) << 8 * byte
    fields = {"wkb": _without_srid(offsets, data, mask, present, start), "srid": fixed(srid, pa.int64(), srid != 0)}
    if point:
        fields = {**_coordinates(data, present, len(values)), **fields}
    type_ = pa.struct([(name, field.type) for name, field in fields.items()])
    return pa.StructArray.from_buffers(type_, len(values), [bitmap(mask)], children=list(fields.values()))


def _without_srid(offsets: Any, data: Any, mask: Any, present: Ints, start: Ints) -> BytesArray:
    keep = np.ones(len(data), np.bool_)
    for byte in range(_SRID):
        keep[start[present] + byte] = False
    before = np.zeros(len(offsets), np.int64)
    before[present + 1] = _SRID
    return variable(offsets - np.cumsum(before), data[keep], pa.binary(), mask)


def _points(data: Any) -> Any:
    """Return the WKB of points as a matrix with one row per point."""
    return data.reshape(-1, _SRID + _POINT)[:, _SRID:]


def _coordinates(data: Any, present: Ints, count: int) -> dict[str, Any]:
    coordinates = {}
    for name, place in (("x", _X), ("y", _Y)):
        numbers = np.zeros(count, np.float64)
        numbers[present] = np.ascontiguousarray(_points(data)[:, place : place + 8]).view("<f8").reshape(-1)
        coordinates[name] = fixed(numbers, pa.float64())
    return coordinates


TYPES: Family = dict.fromkeys(GEOMETRIES, _geometry)
