"""TINYINTs as booleans: which columns, with which schema and values, and that keys stay apart."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from incsnap.config.load import Loaded, from_properties
from incsnap.connect.schema import Schema
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.table_view import view_of
from incsnap.errors import ConfigError
from incsnap.tables import Column, SourceType, TableId, TableShape
from incsnap.types.modes import Modes
from tests.support.properties import QUIET, dotted

_TYPE = "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter"
_SHAPE = TableShape(
    TableId("d", "t"),
    (Column("id", "tinyint", nullable=False), Column("flag", "tinyint"), Column("i", "int"), Column("t", "tinyint")),
    key=(0,),
    defaults=((1, "-1"),),
)


def loaded(**options: str) -> Loaded:
    return from_properties({**QUIET, "converters": "flags", **dotted(options)}, {})


def test_the_columns_that_are_named_are_booleans() -> None:
    read = loaded(flags__type=_TYPE, flags__selector="D.T.FLAG,d.t.i", flags__length__checker="false")
    assert read.warnings == ()
    _, flag, number, tiny = view_of(_SHAPE, read.settings.columns).fields
    assert flag.schema(Modes()) == Schema("boolean", optional=True, default=False)
    assert number.schema(Modes()) == Schema("int32", optional=True)
    assert tiny.schema(Modes()) == Schema("int16", optional=True)
    columns = [pa.array([], pa.int64()), pa.array([1, 0, -1, 127, None], pa.int64())]
    assert flag.encode(columns, Modes()).complete().to_pylist() == ["true", "false", "false", "true", None]
    assert flag.connect(columns, Modes()).to_pylist() == [True, False, False, True, None]


def test_without_a_selector_all_are() -> None:
    view = view_of(_SHAPE, loaded(flags__type=_TYPE, flags__length__checker="false").settings.columns)
    assert [field.boolean for field in view.fields] == [True, True, False, True]


def test_the_length_is_looked_at_where_nothing_else_is_said() -> None:
    shape = replace(
        _SHAPE, sources=((1, SourceType("TINYINT", 1)), (2, SourceType("INT", 1)), (3, SourceType("TINYINT")))
    )
    settings = loaded(flags__type=_TYPE).settings
    assert [field.boolean for field in view_of(shape, settings.columns).fields] == [False, True, False, False]
    named = loaded(flags__type=_TYPE, flags__selector=r"d\.t\.(id|t)").settings
    assert not any(field.boolean for field in view_of(shape, named.columns).fields)
    # The binlog does not tell it, so the server is asked, though no schema shows it.
    assert settings.asks_for_columns
    assert settings.columns.needs_definitions
    assert not loaded(flags__type=_TYPE, flags__length__checker="false").settings.asks_for_columns


def test_a_boolean_is_no_key_to_tell_rows_apart_by() -> None:
    assert view_of(_SHAPE, ColumnRules()).key_is_identity
    assert not view_of(_SHAPE, ColumnRules(booleans=(".*",))).key_is_identity


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "flags.type: missing"),
        ({"flags.type": "com.acme.Mine"}, "com.acme.Mine is not supported.*incsnap.ignore=converters\\. "),
        ({"flags.type": _TYPE, "flags.length.checker": "perhaps"}, "flags.length.checker: 'perhaps' is not true or"),
        ({"flags.type": _TYPE, "flags.selector": "("}, "flags.selector: '\\('"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_by_name(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_properties({**QUIET, "converters": "flags", **properties}, {})


def test_a_converter_may_be_left_out() -> None:
    rules = loaded(flags__type="com.acme.Mine", incsnap__ignore="converters").settings.columns
    assert (rules.booleans, rules.narrow_booleans) == ((), ())
