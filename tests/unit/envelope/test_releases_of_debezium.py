"""Tests of `incsnap.debezium.version`: what 3.7 writes in another way than 3.6."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from incsnap.config.load import from_properties
from incsnap.connect.avro_schema import avro_schema
from incsnap.connect.json_schema import schema_json
from incsnap.connect.schema import Schema
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.connect_envelope import envelope_schema, key_schema
from incsnap.envelope.table_view import view_of
from incsnap.errors import ConfigError
from incsnap.mysql.table_definitions import in_release, shown
from incsnap.tables import Column, TableId, TableShape
from incsnap.transforms.record_spec import change_spec
from incsnap.types.modes import Modes
from tests.support.properties import QUIET

_OLD, _NEW = Modes(), Modes(debezium="3.7")
_SHAPE = TableShape(
    TableId("shop", "t"),
    (
        Column("id", "tinyint", nullable=False),
        Column("small", "tinyint"),
        Column("large", "tinyint", unsigned=True),
        Column("medium", "mediumint", unsigned=True),
        Column("kind", "enum", charset="utf8mb4", values=("a,b", "back\\slash")),
        Column("kinds", "set", charset="utf8mb4", values=("c\\d",)),
    ),
    key=(0,),
    defaults=((1, "10"),),
)
_SPEC = change_spec("p.shop.t")


def row_fields(written: Any) -> dict[str, Any]:
    """Return the fields of the row in an envelope's schema as Connect writes it."""
    (after,) = (each for each in json.loads(written)["fields"] if each["field"] == "after")
    return {each["field"]: each for each in after["fields"]}


def test_a_signed_tinyint_is_an_int8_in_json_from_3_7_on() -> None:
    view = view_of(_SHAPE, ColumnRules())
    old, new = (row_fields(schema_json(envelope_schema(view, _SPEC, modes))) for modes in (_OLD, _NEW))

    assert [old[name]["type"] for name in ("id", "small", "large", "medium")] == ["int16", "int16", "int16", "int32"]
    assert [new[name]["type"] for name in ("id", "small", "large", "medium")] == ["int8", "int8", "int16", "int32"]
    assert new["small"] == {**old["small"], "type": "int8"}
    assert new["small"]["default"] == 10
    key = json.loads(schema_json(key_schema(view, _SPEC, _NEW)))
    assert key["fields"] == [{"type": "int8", "optional": False, "field": "id"}]


def test_a_signed_tinyint_is_an_int_of_connect_type_int8_in_avro_from_3_7_on() -> None:
    view = view_of(_SHAPE, ColumnRules())
    old, new = (avro_schema(key_schema(view, _SPEC, modes)) for modes in (_OLD, _NEW))

    assert old["fields"] == [{"name": "id", "type": {"type": "int", "connect.type": "int16"}}]
    assert new["fields"] == [{"name": "id", "type": {"type": "int", "connect.type": "int8"}}]


def test_the_allowed_values_of_enum_and_set_escape_backslashes_from_3_7_on() -> None:
    view = view_of(_SHAPE, ColumnRules())
    old, new = (row_fields(schema_json(envelope_schema(view, _SPEC, modes))) for modes in (_OLD, _NEW))

    assert old["kind"]["parameters"] == {"allowed": "a\\,b,back\\slash"}
    assert new["kind"]["parameters"] == {"allowed": "a\\,b,back\\\\slash"}
    assert (old["kinds"]["parameters"], new["kinds"]["parameters"]) == ({"allowed": "c\\d"}, {"allowed": "c\\\\d"})


def test_a_negative_number_is_true_from_3_7_on() -> None:
    shape = TableShape(_SHAPE.id, _SHAPE.columns[:2], key=(0,), defaults=((1, "-1"),))
    flag = view_of(shape, ColumnRules(booleans=(r".*\.small",))).fields[1]
    columns = [pa.array([0], pa.int64()), pa.array([1, 0, -1, None], pa.int64())]

    assert flag.encode(columns, _OLD).complete().to_pylist() == ["true", "false", "false", None]
    assert flag.encode(columns, _NEW).complete().to_pylist() == ["true", "false", "true", None]
    assert flag.frame(columns, _NEW).to_pylist() == [True, False, True, None]
    assert flag.schema(_OLD) == Schema("boolean", optional=True, default=False)
    assert flag.schema(_NEW) == Schema("boolean", optional=True, default=True)


def test_a_tinyint_has_its_own_number_in_table_changes_from_3_7_on() -> None:
    table = shown("CREATE TABLE `t` (`a` tinyint NOT NULL, `b` tinyint unsigned, `c` smallint) DEFAULT CHARSET=utf8mb4")

    assert [each["jdbcType"] for each in in_release(table, "3.6")["columns"]] == [5, 5, 5]
    assert [each["jdbcType"] for each in in_release(table, "3.7")["columns"]] == [-6, -6, 5]


def test_the_release_is_3_6_unless_a_known_one_is_named() -> None:
    assert from_properties(QUIET).settings.modes.debezium == "3.6"
    assert from_properties({**QUIET, "incsnap.debezium.version": "3.7"}).settings.modes.debezium == "3.7"
    with pytest.raises(ConfigError, match=r"incsnap\.debezium\.version: '3\.5' is not one of: 3\.6, 3\.7"):
        from_properties({**QUIET, "incsnap.debezium.version": "3.5"})
