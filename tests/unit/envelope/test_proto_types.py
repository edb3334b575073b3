"""A test of each MySQL type under each mode: google.protobuf reads back the field's Connect values from our bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from incsnap.connect.proto_schema import ProtoStyle
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.proto_format import ProtoValues, proto_keys
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_view import view_of
from incsnap.tables import Column, TableId, TableShape
from incsnap.transforms.record_spec import change_spec
from incsnap.types.modes import Modes
from tests.support.proto_reader import ProtoRegistry, seen
from tests.support.type_cases import CASES, MODES, name_of

STYLES = {"default": ProtoStyle(), "optional": ProtoStyle(optional=True), "wrapper": ProtoStyle(wrapped=True)}


@pytest.mark.parametrize("modes", MODES, ids=name_of)
@pytest.mark.parametrize("case", CASES, ids=name_of)
@pytest.mark.parametrize(("style", "nullable"), [*((name, True) for name in STYLES), ("default", False)])
def test_protobuf_reads_the_connect_values(case: tuple[Column, Any], modes: Modes, style: str, nullable: bool) -> None:
    column, values = replace(case[0], nullable=nullable), case[1]
    if nullable:
        values = pa.concat_arrays([values, pa.nulls(2, values.type)])
    view = view_of(TableShape(TableId("d", "t"), (column,), (0,)), ColumnRules())
    of_style = STYLES[style]
    choice = FormatChoice("protobuf", optional=of_style.optional, wrapped=of_style.wrapped)
    envelope, registry = EnvelopeSettings("p", "1", modes, key=choice, value=choice), ProtoRegistry()
    schema = view.fields[0].schema(modes)
    expected = [seen(schema, value, of_style) for value in view.fields[0].connect([values], modes).to_pylist()]

    rows = ProtoValues(view, change_spec("p.d.t"), envelope, registry).reads([values], SourceConstants("f", 4, 0), 0)
    assert [registry.read(row, "p.d.t-value")["after"]["c"] for row in rows.to_pylist()] == expected

    keys = proto_keys(view, change_spec("p.d.t"), envelope, registry).keys([values])
    assert [registry.read(key, "p.d.t-key")["c"] for key in keys.to_pylist()] == expected
