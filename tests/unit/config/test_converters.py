"""TINYINTs as booleans: which columns, with which schema and values, and that keys stay apart."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incsnap.config.load import Loaded, from_properties
from incsnap.connect.schema import Schema
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.table_view import view_of
from incsnap.errors import ConfigError
from incsnap.tables import Column, TableId, TableShape
from incsnap.types.modes import Modes

_TYPE = "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter"
_BASE = {
    "database.hostname": "h",
    "database.user": "u",
    "topic.prefix": "p",
    "bootstrap.servers": "k:9092",
    "checkpoint.location": "/c",
    "snapshot.mode": "no_data",
    "signal.enabled.channels": "file",
}
_SHAPE = TableShape(
    TableId("d", "t"),
    (Column("id", "tinyint", nullable=False), Column("flag", "tinyint"), Column("i", "int"), Column("t", "tinyint")),
    key=(0,),
    defaults=((1, "-1"),),
)


def loaded(**more: str) -> Loaded:
    given = {name.replace("__", "."): value for name, value in more.items()}
    return from_properties({**_BASE, "converters": "flags", **given}, {})


def test_the_columns_that_are_named_are_booleans() -> None:
    found = loaded(flags__type=_TYPE, flags__selector="D.T.FLAG,d.t.i", flags__length__checker="false")
    assert found.warnings == ()
    _, flag, number, other = view_of(_SHAPE, found.settings.columns).fields
    assert flag.schema(Modes()) == Schema("boolean", optional=True, default=False)
    assert number.schema(Modes()) == Schema("int32", optional=True)
    assert other.schema(Modes()) == Schema("int16", optional=True)
    columns = [pa.array([], pa.int64()), pa.array([1, 0, -1, 127, None], pa.int64())]
    assert flag.encode(columns, Modes()).complete().to_pylist() == ["true", "false", "false", "true", None]
    assert flag.connect(columns, Modes()).to_pylist() == [True, False, False, True, None]


def test_without_a_selector_all_are() -> None:
    view = view_of(_SHAPE, loaded(flags__type=_TYPE, flags__length__checker="false").settings.columns)
    assert [field.boolean for field in view.fields] == [True, True, False, True]


def test_a_boolean_is_no_key_to_tell_rows_apart_by() -> None:
    assert view_of(_SHAPE, ColumnRules()).key_is_identity
    assert not view_of(_SHAPE, ColumnRules(booleans=(".*",))).key_is_identity


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "flags.type: missing"),
        ({"flags.type": "com.acme.Mine"}, "com.acme.Mine is not supported.*incsnap.ignore=converters "),
        ({"flags.type": _TYPE}, "flags.length.checker: .*set flags.length.checker=false"),
        ({"flags.type": _TYPE, "flags.length.checker": "false", "flags.selector": "("}, "flags.selector: '\\('"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_by_name(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        from_properties({**_BASE, "converters": "flags", **given}, {})


def test_a_converter_may_be_left_out() -> None:
    assert loaded(flags__type="com.acme.Mine", incsnap__ignore="converters").settings.columns.booleans == ()
