"""Tests of what verify refuses by name, and never calls equal."""

from __future__ import annotations

import pytest

from incsnap.config.load import from_properties
from incsnap.errors import ConfigError
from incsnap.tables import Column, TableId, TableShape
from incsnap.tasks.formats import format_of
from incsnap.verify.record_reading import RecordForm, for_table
from tests.support.properties import QUIET

_SHAPE = TableShape(TableId("d", "t"), (Column("id", "int"), Column("v", "int", nullable=True)), (0,))
_UNWRAP = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}


def form_of(properties: dict[str, str]) -> RecordForm:
    settings = from_properties({**QUIET, **properties}).settings
    return RecordForm.of(format_of(for_table(settings), _SHAPE), settings.formats)


def test_forms_that_can_be_read() -> None:
    assert form_of({}) == RecordForm(envelope=True, key_schemas=False, schemas=False)
    assert form_of({"tombstones.on.delete": "false"}).tombstones is False
    unwrapped = form_of({**_UNWRAP, "transforms.u.add.fields": "op,source.ts_ms"})
    assert (unwrapped.envelope, unwrapped.added) == (False, ("__op", "__source_ts_ms"))


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        (
            {
                "transforms": "f",
                "transforms.f.type": "org.apache.kafka.connect.transforms.InsertField$Value",
                "transforms.f.static.field": "x",
                "transforms.f.static.value": "y",
            }
            | {"transforms": "u,f", "transforms.u.type": _UNWRAP["transforms.u.type"]},
            "transforms edit its records",
        ),
        (
            {
                "transforms": "k",
                "transforms.k.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
                "transforms.k.field": "id",
            },
            "transforms edit its records|drop or move",
        ),
        (
            {
                "value.converter": "io.confluent.connect.json.JsonSchemaConverter",
                "value.converter.schema.registry.url": "http://r",
            },
            "values of the format json-schema",
        ),
    ],
)
def test_what_cannot_be_repeated_is_refused_by_name(properties: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        form_of(properties)
