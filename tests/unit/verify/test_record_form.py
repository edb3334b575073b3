"""Tests of what verify refuses by name, and never calls equal."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incsnap.config.load import from_properties
from incsnap.errors import ConfigError
from incsnap.tables import Column, TableId, TableShape
from incsnap.tasks.formats import format_of
from incsnap.verify.edited_form import EditedRows
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE, UNREADABLE, RecordForm, for_table, read_rows
from tests.support.properties import QUIET

_SHAPE = TableShape(
    TableId("d", "t"), (Column("id", "int"), Column("v", "int", nullable=True), Column("f", "float")), (0,)
)
_MODE = "transforms.u.delete.tombstone.handling.mode"
_UNWRAP = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}


def form_of(properties: dict[str, str], shape: TableShape = _SHAPE) -> RecordForm:
    settings = from_properties({**QUIET, **properties}).settings
    return RecordForm.of(format_of(for_table(settings), shape), settings.formats)


def test_forms_that_can_be_read() -> None:
    assert form_of({}) == RecordForm(envelope=True, key_schemas=False, schemas=False)
    assert form_of({"tombstones.on.delete": "false"}).tombstones is False
    unwrapped = form_of({**_UNWRAP, "transforms.u.add.fields": "op,source.ts_ms"})
    assert (unwrapped.envelope, unwrapped.edited.added) == (False, ("__op", "__source_ts_ms"))


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


def test_edits_that_leave_the_added_members_at_the_end_are_read_by_columns() -> None:
    for edits in (
        edited(type="MaskField", fields="v"),
        edited(type="ReplaceField", exclude="v"),
        edited(type="ReplaceField", include="id,__op"),
        edited(type="Cast", spec="v:string"),
        edited(type="MaskField", fields="__op"),
    ):
        assert form_of(edits).edited == EditedRows(("__op",))
    assert form_of(edited(type="InsertField", static_field="x", static_value="y")).edited == EditedRows(("__op", "x"))
    assert form_of(edited(type="ReplaceField", exclude="__op")).edited == EditedRows()
    assert form_of(edited(type="ReplaceField", renames="__op:what")).edited == EditedRows(("what",))
    envelope = {**edited(type="InsertField", static_field="x", static_value="y"), "transforms": "e"}
    assert (form_of(envelope).envelope, form_of(envelope).edited) == (True, EditedRows())


def test_rows_of_snapshots_that_look_like_insertions_are_refused_unless_they_are_unwrapped() -> None:
    inserted = {"transforms": "i", "transforms.i.type": "io.debezium.connector.mysql.transforms.ReadToInsertEvent"}
    with pytest.raises(ConfigError, match=r"d\.t: ReadToInsertEvent shows rows of snapshots as insertions"):
        form_of(inserted)
    # Unwrapped rows show no place, so verify does not ask whether a snapshot has read them.
    assert form_of({**inserted, **_UNWRAP, "transforms": "i,u"}) == form_of(_UNWRAP)
    elsewhere = {
        "transforms.i.predicate": "p",
        "predicates": "p",
        "predicates.p.type": "TopicNameMatches",
        "predicates.p.pattern": "other",
    }
    assert form_of({**inserted, **elsewhere}) == form_of({})


def test_times_in_another_zone_can_be_read() -> None:
    zoned = {
        "transforms": "z",
        "transforms.z.type": "io.debezium.transforms.TimezoneConverter",
        "transforms.z.converted.timezone": "Pacific/Easter",
    }
    assert form_of(zoned) == form_of({})


def test_edits_that_move_the_members_are_read_row_by_row() -> None:
    hoisted = form_of(edited(type="HoistField", field="row"))
    assert hoisted.edited == EditedRows(("__op",), at_end=False, hoists=("row",))
    marked = edited(type="Cast", spec="__deleted:boolean")
    marked["transforms.u.delete.tombstone.handling.mode"] = "rewrite"
    form = form_of(marked)
    assert form.edited == EditedRows(("__deleted", "__op"), at_end=False, deleted="__deleted")

    values = pa.array(
        [b'{"id":1,"v":2,"__deleted":false,"__op":"u"}', b'{"id":1,"v":2,"__deleted":true,"__op":"d"}', None, b"?"],
        pa.binary(),
    )
    states, rows = read_rows(values, form)
    assert states.to_pylist() == [ROW, DELETION, TOMBSTONE, UNREADABLE]
    assert rows.to_pylist() == [b'{"id":1,"v":2}', None, None, None]
    states, rows = read_rows(pa.array([b'{"row":{"id":1,"v":2,"__op":"u"}}', b'{"row":null}'], pa.binary()), hoisted)
    assert (states.to_pylist(), rows.to_pylist()) == ([ROW, DELETION], [b'{"id":1,"v":2}', None])


def test_rows_behind_other_members_keep_the_digits_of_their_numbers() -> None:
    hoisted = form_of(edited(type="HoistField", field="row"))
    numbers = (b"123456789012345678.91", b"123456789012345678.92", b"1E+400", b"1E+999999999")
    values = pa.array([b'{"row":{"id":1,"n":%s,"__op":"u"}}' % number for number in numbers], pa.binary())
    assert read_rows(values, hoisted)[1].to_pylist() == [b'{"id":1,"n":%s}' % number for number in numbers]


def test_fields_that_show_doubles_are_known_behind_edits() -> None:
    columns = (Column("id", "int"), Column("d", "decimal", precision=20, scale=2), Column("x", "double"))
    shape = TableShape(TableId("d", "t"), columns, (0,))
    assert form_of({}, shape).doubles == ("x",)
    assert form_of({"decimal.handling.mode": "double"}, shape).doubles == ("d", "x")
    assert form_of(edited(type="Cast", spec="id:float64"), shape).doubles == ("id", "x")
    renamed = {**edited(type="ReplaceField", renames="d:e"), "decimal.handling.mode": "double"}
    assert form_of(renamed, shape).doubles == ("e", "x")


def test_deletions_that_a_cast_does_not_concern_are_read_by_columns() -> None:
    properties = edited(type="Cast", spec="v:string")
    properties["transforms.u.delete.tombstone.handling.mode"] = "rewrite-with-tombstone"
    values = [b'{"id":1,"v":"2","__deleted":"false","__op":"c"}', b'{"id":1,"v":"2","__deleted":"true","__op":"d"}']
    states, rows = read_rows(pa.array(values, pa.binary()), form_of(properties))
    assert (states.to_pylist(), rows.to_pylist()) == ([ROW, DELETION], [b'{"id":1,"v":"2"}', None])


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        (edited(type="ExtractField", field="v"), "puts the field v in the place of the row"),
        (edited(type="Cast", spec="f:string"), "casts f of the type float"),
        (edited(type="ReplaceField", renames="f:g"), "renames f of the type float"),
        ({**edited(type="MaskField", fields="__deleted"), _MODE: "rewrite"}, "change __deleted"),
        ({**edited(type="ReplaceField", exclude="__deleted"), _MODE: "rewrite"}, "drop __deleted"),
        ({**_UNWRAP, _MODE: "drop"}, "drop deletions"),
    ],
)
def test_edits_that_cannot_be_repeated_are_refused_with_the_reason(edits: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
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
            "transforms edit its keys|drop or move",
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
