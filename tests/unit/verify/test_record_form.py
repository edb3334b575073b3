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


def test_json_with_the_id_of_a_schema_is_encoded_as_plain_json_with_the_same_decimals() -> None:
    properties = {
        "value.converter": "io.confluent.connect.json.JsonSchemaConverter",
        "value.converter.schema.registry.url": "http://r",
        "value.converter.decimal.format": "NUMERIC",
    }
    form = form_of(properties)
    assert (form.key_frame, form.value_frame, form.of_table.value_frame) == ("", "json-schema", "")
    assert for_table(from_properties({**QUIET, **properties}).settings).formats.value.decimals == "numeric"


def edited(**settings: str) -> dict[str, str]:
    """Return settings that unwrap rows with the member `__op` and edit them: `settings` are those of the edit."""
    connect = "org.apache.kafka.connect.transforms."
    edits = {f"transforms.e.{name.replace('_', '.')}": value for name, value in settings.items()}
    edits["transforms.e.type"] = f"{connect}{settings['type']}$Value"
    return {**_UNWRAP, "transforms": "u,e", "transforms.u.add.fields": "op", **edits}


def test_rows_whose_edits_leave_the_added_members_at_their_end_can_be_read() -> None:
    assert form_of(edited(type="MaskField", fields="v")).added == ("__op",)
    assert form_of(edited(type="ReplaceField", exclude="v")).added == ("__op",)
    assert form_of(edited(type="ReplaceField", include="id,__op")).added == ("__op",)
    assert form_of(edited(type="InsertField", static_field="x", static_value="y")).added == ("__op", "x")
    envelope = {**edited(type="InsertField", static_field="x", static_value="y"), "transforms": "e"}
    assert (form_of(envelope).envelope, form_of(envelope).added) == (True, ())


@pytest.mark.parametrize(
    "edits",
    [
        edited(type="MaskField", fields="__op"),
        edited(type="ReplaceField", exclude="__op"),
        edited(type="ReplaceField", include="id"),
        edited(type="ReplaceField", renames="__op:what"),
        edited(type="Cast", spec="v:string"),
        edited(type="HoistField", field="row"),
    ],
)
def test_edits_of_the_added_members_and_of_types_are_refused(edits: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="edit its records"):
        form_of(edits)


@pytest.mark.parametrize(
    ("properties", "why"),
    [
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
                "value.converter": "io.confluent.connect.protobuf.ProtobufConverter",
                "value.converter.schema.registry.url": "http://r",
            },
            "values of the format protobuf",
        ),
    ],
)
def test_what_cannot_be_repeated_is_refused_by_name(properties: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        form_of(properties)
