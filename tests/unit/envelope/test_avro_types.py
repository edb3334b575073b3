"""A test of each MySQL type under each mode: fastavro reads back the field's Connect values from our bytes."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from incsnap.envelope.avro_format import AvroValues, avro_keys
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_view import view_of
from incsnap.tables import Column, TableId, TableShape
from incsnap.transforms.record_spec import change_spec
from incsnap.types.modes import Modes
from tests.support.type_cases import CASES, MODES, name_of


def plain(schema: Any) -> Any:
    """Return the schema without logical types, so that fastavro returns the stored numbers and bytes."""
    if isinstance(schema, dict):
        return {name: plain(value) for name, value in schema.items() if name != "logicalType"}
    return [plain(value) for value in schema] if isinstance(schema, list) else schema


class Reader:
    def __call__(self, subject: str, schema: str) -> int:
        self.schema = fastavro.parse_schema(plain(json.loads(schema)))
        return 1

    def read(self, data: bytes) -> Any:
        stream = io.BytesIO(data[5:])
        value = fastavro.schemaless_reader(stream, self.schema, None)
        assert stream.read() == b""
        return value


@pytest.mark.parametrize("modes", MODES, ids=name_of)
@pytest.mark.parametrize("case", CASES, ids=name_of)
@pytest.mark.parametrize("nullable", [True, False], ids=["null", "not null"])
def test_fastavro_reads_the_connect_values(case: tuple[Column, Any], modes: Modes, nullable: bool) -> None:
    column, values = replace(case[0], nullable=nullable), case[1]
    if nullable:
        values = pa.concat_arrays([values, pa.nulls(2, values.type)])
    view = view_of(TableShape(TableId("d", "t"), (column,), (0,)), ColumnRules())
    envelope, reader = EnvelopeSettings("p", "1", modes), Reader()
    expected = view.fields[0].connect([values], modes).to_pylist()

    rows = AvroValues(view, change_spec("p.d.t"), envelope, reader).reads([values], SourceConstants("f", 4, 0), 0)
    assert [reader.read(row)["after"]["c"] for row in rows.to_pylist()] == expected

    keys = avro_keys(view, change_spec("p.d.t"), envelope, reader).keys([values])
    assert [reader.read(key)["c"] for key in keys.to_pylist()] == expected
