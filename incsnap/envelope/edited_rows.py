"""Keys and values behind transforms that edit their fields: as JSON, Avro or Protobuf, a whole column at a time.

Records that no edit concerns do not come here: their formats write columns without a step between.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray, Columns
from incsnap.columns.variable import take
from incsnap.connect.avro_columns import AvroRow
from incsnap.connect.java_floats import java_text
from incsnap.connect.proto_columns import ProtoRow, single_messages
from incsnap.connect.schema import Schema
from incsnap.envelope.added_fields import change_values, read_values
from incsnap.envelope.avro_format import Register, schema_head
from incsnap.envelope.edited_fields import Rows, Whole, added_field, column_field, edited, object_texts
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.format import Changes
from incsnap.envelope.framed_json import id_around, json_head, with_head
from incsnap.envelope.json_rows import around, join
from incsnap.envelope.proto_format import proto_head
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_view import TableView
from incsnap.errors import ConfigError
from incsnap.tables import TableId
from incsnap.transforms.record_spec import Added, Constant, EnvelopeField, Inserted, RecordSpec, TakeFromValue
from incsnap.types.modes import Modes


class WholeFormat:
    """The encoder of keys or values whose fields are edited. `subject`: the registry's name for the schema."""

    def __init__(self, whole: Whole, choice: FormatChoice, register: Register | None, subject: str) -> None:
        self._whole, self._choice, self._kind, self._prefix = whole, choice, choice.kind, b""
        self._head, self._tail = around(whole.whole_schema if choice.schemas else None)
        if choice.kind == "text":
            _refuse_what_is_no_text(whole)
        elif choice.kind == "avro":
            assert register is not None
            self._prefix = schema_head(register, subject, whole.whole_schema, choice.frame)
        elif choice.kind == "json-schema":
            assert register is not None
            self._prefix = json_head(register, subject, whole.whole_schema, choice)
        elif choice.kind == "ext-json":
            assert register is not None
            self._head, self._tail = id_around(register, subject, whole.whole_schema)
        elif choice.kind == "protobuf":
            assert register is not None
            self._prefix = proto_head(register, subject, whole.whole_schema, choice.proto_style)

    def encode(self, rows: Rows) -> BytesArray:
        """Return one key or value for each row (`pa.binary()`)."""
        if self._kind == "avro":
            return self._records(rows)
        if self._kind == "text":
            return self._texts(rows)
        if self._kind == "protobuf":
            return self._messages(rows)
        if self._whole.is_struct:
            texts: Array = object_texts(self._whole.fields, rows)
        else:
            texts = self._whole.fields[0].encode(rows).complete().fill_null("null")
        joined = join([self._head, texts, self._tail], len(rows))
        return with_head(self._prefix, joined) if self._prefix else joined

    def _texts(self, rows: Rows) -> BytesArray:
        """Return the texts that Java makes of values: `Struct{id=1,name=x}`, without the fields that are null."""
        texts = [_as_java_prints(field.connect(rows)) for field in self._whole.fields]
        if not self._whole.is_struct:
            return texts[0].cast(pa.binary())
        members: list[Array] = []
        for field, values in zip(self._whole.fields, texts, strict=True):
            members.append(pc.binary_join_element_wise(f"{field.name}=", values, ""))
        inner = pc.binary_join_element_wise(*members, ",", null_handling="skip")
        return pc.binary_join_element_wise("Struct{", inner, "}", "").cast(pa.binary())

    def _records(self, rows: Rows) -> BytesArray:
        row = AvroRow(len(rows))
        row.literal(self._prefix)
        for field in self._whole.fields:
            row.field(field.name, field.schema, field.connect(rows))
        return row.joined()

    def _messages(self, rows: Rows) -> BytesArray:
        if not self._whole.is_struct:
            field = self._whole.fields[0]
            messages = single_messages(self._whole.schema, field.connect(rows), self._choice.proto_style)
            return with_head(self._prefix, messages)
        row = ProtoRow(len(rows), self._choice.proto_style)
        row.literal(self._prefix)
        for number, field in enumerate(self._whole.fields, 1):
            row.field(number, field.name, field.schema, field.connect(rows))
        return row.joined()


def _as_java_prints(values: Array) -> Array:
    return java_text(values) if pa.types.is_floating(values.type) else values.cast(pa.string())


def _refuse_what_is_no_text(whole: Whole) -> None:
    """Raise ConfigError for a field that Java would print without its value."""
    for field in whole.fields:
        if field.schema.type in ("bytes", "struct", "array", "map"):
            raise ConfigError(
                f"StringConverter has no text for the field {field.name} of a key: its type is"
                f" {field.schema.name or field.schema.type}",
                "Set key.converter to JsonConverter; or make the key of another column (ValueToKey), or set"
                " decimal.handling.mode=string, if it is a DECIMAL.",
            )


class EditedKeys:
    """The format of keys of one table whose fields are edited."""

    def __init__(
        self, view: TableView, spec: RecordSpec, envelope: EnvelopeSettings, choice: FormatChoice, modes: Modes,
        register: Register | None,
    ) -> None:  # fmt: skip
        whole = Whole(
            Schema("struct", name=spec.key_name or None, version=spec.key_version),
            tuple(column_field(field, modes) for field in view.key)
            + tuple(added_field(constant) for constant in spec.key_fields),
        )
        edits = spec.key_edits
        added: list[Added] = [*spec.key_fields]
        for place, edit in enumerate(edits):
            if isinstance(edit, TakeFromValue):
                whole, more = _taken(view, spec, edit, modes)
                added, edits = more, spec.key_edits[place + 1 :]
        added += [edit for edit in edits if isinstance(edit, Constant | Inserted)]
        self._added: dict[Added, str | None] = {}
        for each in added:
            if isinstance(each, EnvelopeField):
                raise ConfigError(
                    f"The key of {view.shape.id} would have the field {each.name} of the envelope, which deletions and"
                    " tombstones do not have",
                    "Name columns of the table in the fields of ValueToKey.",
                )
            self._added[each] = each.text
        self._format = WholeFormat(edited(whole, edits, view.shape.id), choice, register, f"{spec.topic}-key")

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each row (`pa.binary()`)."""
        return self._format.encode(Rows(columns, dict(self._added)))


def _taken(view: TableView, spec: RecordSpec, edit: TakeFromValue, modes: Modes) -> tuple[Whole, list[Added]]:
    """Return the key that ValueToKey makes of fields of the value, and the added fields that it has."""
    value = whole_value(view, spec, edit.edits, modes)
    names = {field.name: field for field in value.fields} if value.is_struct else {}
    if missing := [name for name in edit.fields if name not in names]:
        raise ConfigError(
            f"ValueToKey asks for {', '.join(missing)}, which records of {view.shape.id} do not have; they have"
            f" {', '.join(names)}",
            "Name other fields, or give the transform a predicate (TopicNameMatches) that keeps it from this table.",
        )
    all_added = [each for each in (*spec.fields, *edit.edits) if isinstance(each, EnvelopeField | Constant | Inserted)]
    return Whole(Schema("struct"), tuple(names[name] for name in edit.fields)), [
        each for each in all_added if each.name in edit.fields
    ]


def whole_value(view: TableView, spec: RecordSpec, edits: Sequence[object], modes: Modes) -> Whole:
    """Return the value of flat rows behind the edits."""
    schema = Schema("struct", name=spec.row_name, version=spec.value_version)
    columns = tuple(column_field(field, modes) for field in view.fields)
    return edited(Whole(schema, columns), (*spec.fields, *edits), view.shape.id)  # type: ignore[arg-type]


class EditedRows:
    """The format of values that are flat rows whose fields are edited."""

    def __init__(
        self, view: TableView, spec: RecordSpec, envelope: EnvelopeSettings, register: Register | None
    ) -> None:
        self._table: TableId = view.shape.id
        self._spec, self._envelope = spec, envelope
        kinds = EnvelopeField | Constant | Inserted
        self._added = [each for each in (*spec.fields, *spec.edits) if isinstance(each, kinds)]
        whole = whole_value(view, spec, spec.edits, envelope.value_modes)
        self._format = WholeFormat(whole, envelope.value, register, f"{spec.topic}-value")

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        values = read_values(self._added, source, now_us, self._table, self._envelope, self._spec.read_op)
        return self._format.encode(Rows(columns, dict(zip(self._added, values, strict=True))))

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`): of a deletion the row before it."""
        index = what.before if self._spec.op == "d" else what.after
        columns = [None if column is None else take(column, index) for column in images]
        values = change_values(self._added, what, self._table, self._envelope)
        return self._format.encode(Rows(columns, dict(zip(self._added, values, strict=True))))
