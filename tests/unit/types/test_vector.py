"""VECTOR."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from incsnap.tables import Column
from incsnap.types.column_type import describe
from incsnap.types.modes import Modes
from tests.support.column_values import TABLE, connected, decoded

VECTOR = Column("c", "vector")


def test_a_vector_is_a_list_of_floats() -> None:
    values = [struct.pack("<3f", 1, 0.1, 1e10), None, b""]
    assert decoded(VECTOR, values, meta=4) == values
    assert connected(VECTOR, values) == [[1.0, struct.unpack("f", struct.pack("f", 0.1))[0], 1e10], None, []]
    text = describe(VECTOR, TABLE).to_json(pa.array([None, *values], pa.binary()).slice(1), Modes()).to_pylist()
    assert text == ["[1.0,0.1,1.0E10]", "null", "[]"]


def test_bytes_that_are_no_floats_are_refused() -> None:
    with pytest.raises(ValueError, match="VECTOR"):
        connected(VECTOR, [b"abc"])
    with pytest.raises(ValueError, match="VECTOR"):
        decoded(VECTOR, [b"abc"], meta=4)
