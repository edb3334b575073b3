"""Tests of `ColumnType`, the only way to the types, and of rules that hold for every type."""

from __future__ import annotations

import base64
import importlib
import json
import pkgutil
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from incsnap import types
from incsnap.errors import UnsupportedType
from incsnap.tables import Column
from incsnap.types import column_type
from incsnap.types.column_type import describe
from incsnap.types.modes import CHOICES, Modes
from tests.support.column_values import TABLE, connected, default_of, encoded, parsed

_POINT = bytes(4) + b"\x01\x01\x00\x00\x00" + struct.pack("<dd", 1.5, -2)
_LINE = bytes(4) + b"\x01\x02\x00\x00\x00" + struct.pack("<Idddd", 2, 0, 0, 1, 1)
_COLUMNS = [
    *(Column("c", type_, nullable=True) for type_ in ("int", "year", "float", "double", "date", "json")),
    *(Column("c", type_, fraction=4) for type_ in ("time", "datetime", "timestamp")),
    Column("c", "bigint", unsigned=True), Column("c", "decimal", precision=9, scale=3),
    Column("c", "bit", length=1), Column("c", "bit", length=20), Column("c", "varchar", charset="latin1"),
    Column("c", "blob", charset="binary"), Column("c", "point"), Column("c", "polygon"), Column("c", "vector"),
    Column("c", "set", charset="utf8mb4", values=("a", "b")),
]  # fmt: skip
_SAMPLES: dict[str, list[Any]] = {
    "decimal": [Decimal("1.500"), Decimal("-0.001")], "varchar": ["a\"é", ""], "json": ['{"a":[1,"\\n"]}', "null"],
    "blob": [b"\x00\xff", b""], "point": [_POINT], "polygon": [_LINE], "set": ["a,b", ""],
    "vector": [struct.pack("<ff", 1, -2.5)], "date": [0, 19000], "float": [1.5, -2e10], "double": [1.5, 1e-7],
}  # fmt: skip


def name_of(column: Column) -> str:
    return f"{column.type}{column.length or ''}"


def test_every_type_stands_in_one_family_and_every_family_behind_the_door() -> None:
    modules = [
        importlib.import_module(module.name) for module in pkgutil.walk_packages(types.__path__, "incsnap.types.")
    ]
    families = [module.TYPES for module in modules if hasattr(module, "TYPES")]
    in_order = [name for family in families for name in family]
    assert sorted(in_order) == sorted(column_type._TYPES)


@pytest.mark.parametrize("column", _COLUMNS, ids=name_of)
def test_json_text_says_what_the_connect_values_are(column: Column) -> None:
    type_ = describe(column, TABLE)
    array = pa.array([None, *_SAMPLES.get(column.type, [1, 0, 1_234_567]), None], type_.arrow).slice(1)
    for setting, choices in CHOICES.items():
        # A number that JSON has of its own is no text of bytes.
        for choice in (each for each in choices if each != "numeric"):
            modes = Modes(**{setting: choice})
            values = type_.connect(array, modes).to_pylist()
            assert [json.loads(text) for text in type_.to_json(array, modes).to_pylist()] == list(map(_in_json, values))


def _in_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return {name: _in_json(each) for name, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("column", _COLUMNS, ids=name_of)
def test_a_column_of_nulls_and_a_column_of_nothing(column: Column) -> None:
    for made in (parsed, connected, encoded):
        assert made(column, [None, None]) == [None, None]
        assert made(column, []) == []


@pytest.mark.parametrize(
    "column",
    [
        Column("flags", "time (format before MySQL 5.6)"),
        Column("flags", "set"),
        Column("flags", "varchar", charset="x"),
    ],
)
def test_an_unreadable_type_is_refused_by_name_with_a_repair(column: Column) -> None:
    with pytest.raises(UnsupportedType, match=r"shop\.orders: column flags") as caught:
        describe(column, TABLE)
    assert "table.exclude.list" in caught.value.hint


@pytest.mark.parametrize(
    ("column", "shown", "mode"),
    [
        (Column("valid_to", "datetime"), "9999-12-31 23:59:59", "nanoseconds"),
        (Column("valid_to", "datetime", nullable=True), "9999-12-31 23:59:59", "nanoseconds"),
        (Column("opens", "time"), "-01:00:00", "connect"),
        (Column("opens", "time", nullable=True), "838:59:59", "isostring"),
    ],
)
def test_a_default_that_the_mode_cannot_express_is_left_out_with_one_warning(
    column: Column, shown: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    column_type._warn_of_default.cache_clear()
    for _ in range(2):
        assert default_of(column, shown, time_precision=mode) is None
        assert default_of(column, shown, time_precision=mode, converting="fail") is None
    (warning,) = caplog.messages
    assert all(each in warning for each in (str(TABLE), column.name, shown, f"time.precision.mode={mode}"))
