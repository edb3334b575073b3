"""The way from a table's rows to the records of its topics: the view of the table, and the encoders of each kind of
record.

`table_format` asks the transforms of the settings once for each kind of record, and makes one encoder for each
different answer. Example, with JSON and ExtractNewRecordState (delete.tombstone.handling.mode=drop):

    kind of record   encoder in TableFormat.encoders
    Operation("c")        row to topic shop.inventory.customers, key {"id":1}
    Operation("u")        the same object as for Operation("c")
    Operation("d")        None: the transform drops deletions
    Operation("r")        the same object as for Operation("c")

All records go to one topic with one key, so `uniform` is True.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.envelope.avro_format import AvroRows, AvroStructs, AvroValues, Register, avro_keys, schema_head
from incsnap.envelope.cloud_events import CloudEvents, NoEvents
from incsnap.envelope.connect_envelope import envelope_constants, envelope_schema, key_schema, row_schema
from incsnap.envelope.edited_fields import Whole, column_field, edited
from incsnap.envelope.edited_rows import EditedKeys, EditedRows
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.flat_rows import FlatRows, flat_schema
from incsnap.envelope.format import EnvelopeFormat, JoinedFormat, KeyFormat, StructFormat, ValueFormat
from incsnap.envelope.frame_format import FRAMES, FrameValues
from incsnap.envelope.framed_json import FramedEnvelopes, FramedKeys, FramedStructs, FramedValues, json_ends
from incsnap.envelope.id_headers import IdHeaders
from incsnap.envelope.json_format import JsonRows, JsonStructs, JsonValues
from incsnap.envelope.json_rows import around, json_objects, rows_of
from incsnap.envelope.outbox_events import EventFormat
from incsnap.envelope.partitioner import partition
from incsnap.envelope.proto_format import ProtoRows, ProtoStructs, ProtoValues, proto_head, proto_keys
from incsnap.envelope.record_encoder import CHANGES, READ, Operation, RecordEncoder, record_kind, specs_of, topics
from incsnap.envelope.row_conditions import CaseTopics, RowConditions
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.row_topics import RowTopics
from incsnap.envelope.table_view import EXACT, TableView, view_of
from incsnap.envelope.value_texts import json_template
from incsnap.errors import ConfigError
from incsnap.tables import TableShape
from incsnap.transforms.chain import refusal_of_updates
from incsnap.transforms.outbox import EventRouter
from incsnap.transforms.record_spec import (
    CaseRoute,
    ConvertTimestamp,
    RecordSpec,
    TakeFromValue,
    TimeZone,
    ValueShape,
    change_spec,
)


@dataclass(frozen=True, slots=True)
class Registers:
    """The functions that register schemas. JSON does not use them."""

    key: Register | None = None  #: for schemas of keys; None with JSON
    value: Register | None = None  #: for schemas of values; None with JSON


@dataclass(frozen=True, slots=True, eq=False)
class TableFormat:
    """The formats of one table's records."""

    view: TableView  #: which columns are written, how, and with which key
    topic: str  #: the topic whose partitions choose the buckets
    envelope: EnvelopeSettings  #: the settings
    uniform: bool  #: all records that are sent go to one topic and have one format of keys
    #: format of the keys that choose buckets. If not `uniform`, these keys are never sent. None for a table without a
    #: key.
    key: KeyFormat | None
    #: the encoder of each kind of record; None: a transform drops these records
    encoders: Mapping[Operation, RecordEncoder | None]
    change_encoders: tuple[RecordEncoder, ...]  #: the encoders of changes, each once
    encoder_numbers: tuple[int, ...]  #: of each of `CHANGES` the index into `change_encoders`, -1 for a dropped kind
    #: True: the rows are outbox events. The table then has one bucket, so that the events of one key stay in order,
    #: whichever rows they are in.
    routed: bool = False
    #: table.op.invalid.behavior for updates that are no events: warn, error or fatal; "" if updates are allowed
    updates: str = ""
    #: estimated bytes of a record that do not grow with the values of its row, such as names and schemas; 0 for events
    literal_bytes: int = 0

    @property
    def added_to_keys(self) -> dict[str, str]:
        """Return the fields that a router adds to the key of a snapshot's record, with the texts of this table."""
        read = self.encoders[READ]
        return {} if read is None else {each.name: each.text for each in read.spec.key_fields}

    @property
    def key_identifies(self) -> bool:
        """Return True if equal bytes of `key` mean equal rows, and unequal bytes unequal rows.

        The result is False if keys contain their schema. An ALTER of a column's DEFAULT changes that schema, so the
        same row could have one key in a window and another one in an event.
        """
        return isinstance(self.key, JsonRows) and not self.key.has_schema and self.view.key_is_identity

    def bucket_partitions(self, keys: BytesArray, partitions: Mapping[str, int]) -> npt.NDArray[np.int32]:
        """Return for each key its partition in `topic`, which chooses the bucket.

        `keys` are those of the method `keys`.
        """
        return partition(keys, 1 if self.routed else partitions.get(self.topic, 1))

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each row (`pa.binary()`); null for a table without a key."""
        return pa.nulls(rows_of(columns), pa.binary()) if self.key is None else self.key.keys(columns)

    def identities(self, columns: Columns, keys: BytesArray) -> BytesArray | None:
        """Return the identity of each row; None if the records' keys identify the rows.

        `keys` are those of the method `keys`. If they identify the rows, but transforms give some records other keys,
        `keys` are returned.
        """
        if self.key_identifies or not self.view.identity:
            return None if self.uniform or not self.view.key else keys
        return json_objects(self.view.identity_fields, columns, EXACT)

    def identity_template(self) -> RowTemplate | None:
        """Return the template of the identities of a uniform table; None if its keys identify the rows."""
        serves = self.key_identifies or not self.view.identity
        return None if serves else json_template(self.view.identity_fields, EXACT)


@lru_cache(maxsize=4096)
def table_format(
    shape: TableShape, topic: str, envelope: EnvelopeSettings, registers: Registers = Registers()
) -> TableFormat:
    """Return the formats of a table. They are made once per shape of a table and process.

    `topic` is the table's topic before transforms. This function may ask the schema registry and then raises its
    errors. It raises ConfigError if the transforms cannot be asked about a kind of record.
    """
    maker = _Maker(view_of(shape, envelope.rules), envelope, registers)
    spec_of = specs_of(topic, envelope.transforms, envelope.schema_names, envelope.headers)
    known: dict[RecordSpec, RecordEncoder] = {}
    encoders: dict[Operation, RecordEncoder | None] = {}
    for kind, spec in spec_of.items():
        if spec is not None and spec.encoder_key not in known:
            known[spec.encoder_key] = maker.encoder(spec.encoder_key)
        encoders[kind] = None if spec is None else known[spec.encoder_key]
    home = (*topics(topic, envelope.transforms, envelope.schema_names, envelope.headers), topic)[0]
    sent = list(known.values())
    routed = any(one.event is not None for one in sent)
    by_rows = routed or any(one.topics is not None for one in sent)
    of_changes = [encoders[kind] for kind in CHANGES]
    once = tuple(dict.fromkeys(one for one in of_changes if one is not None))
    numbers = tuple(-1 if one is None else once.index(one) for one in of_changes)
    # Keys that a transform has made are not those of rows: an update may change them.
    has_own_keys = not any(one.spec.key_edits for one in sent)
    uniform = not by_rows and has_own_keys and len({(one.spec.topic, one.key) for one in sent}) == 1
    updates = refusal_of_updates(envelope.transforms, change_spec(topic, "u", envelope.schema_names))
    key = sent[0].key if uniform else maker.own_key()
    literal_bytes = max((_literal_bytes(one.value) for one in sent), default=0)
    return TableFormat(
        maker.view, home, envelope, uniform, key, encoders, once, numbers, routed, updates, literal_bytes
    )


def _literal_bytes(values: ValueFormat | None) -> int:
    if not isinstance(values, JoinedFormat):
        return 0
    template = values.template()
    # The template has two bytes (%b) for a value, but the shortest value (null) has four.
    return len(template.literals) + 2 * len(template.texts) + values.constant_bytes


class _Maker:
    """A maker of the formats of one table. It makes each format once, because Avro's formats ask the registry."""

    def __init__(self, view: TableView, envelope: EnvelopeSettings, registers: Registers) -> None:
        self.view, self._envelope = view, envelope
        self._ids = IdHeaders(envelope, registers.key, registers.value)
        self._registers = Registers(self._ids.register_key, self._ids.register_value)
        self._keys: dict[tuple[object, ...], KeyFormat | None] = {}
        self._of_zones: dict[tuple[TimeZone, ...], _Maker] = {}

    def own_key(self) -> KeyFormat | None:
        """Return the format of keys that no transform has changed: JSON of the columns alone."""
        return JsonRows(self.view.key, self._envelope.key_modes) if self.view.key else None

    def encoder(self, spec: RecordSpec) -> RecordEncoder:
        """Return the encoder of records of this spec."""
        if spec.zones:
            return self._in_zones(spec.zones).encoder(replace(spec, zones=()))
        made = self._encoder(spec)
        headers = (*spec.headers, *self._ids.of(made.key, made.value))
        if headers == spec.headers or made.event is not None:
            return made
        kind = record_kind(spec.value, spec.op, spec.fields, headers, spec.edits)
        return replace(made, spec=replace(spec, headers=headers), kind=kind)

    def _encoder(self, spec: RecordSpec) -> RecordEncoder:
        kind = record_kind(spec.value, spec.op, spec.fields, spec.headers, spec.edits)
        if spec.event is not None:
            event = EventFormat(self.view, spec.event, self._envelope, spec.headers)
            return RecordEncoder(spec, kind, event, event, event=event)
        if self._envelope.value.kind == "cloudevents":
            _refuse_other_than_envelopes(spec)
        topics, kept = self._topics(spec), self._kept(spec)
        key = self._key(spec)
        if spec.value is ValueShape.ENVELOPE:
            envelope = self._envelope_format(spec)
            return RecordEncoder(spec, kind, key, envelope, envelope, topics=topics, kept=kept)
        if spec.value is ValueShape.ROW and (spec.edits or spec.value_version is not None):
            edited = EditedRows(self.view, spec, self._envelope, self._registers.value)
            return RecordEncoder(spec, kind, key, edited, topics=topics, kept=kept)
        if spec.value is ValueShape.ROW:
            rows: ValueFormat = FlatRows(self.view.shape.id, spec, self._envelope, self._rows(spec))
            choice = self._envelope.value
            if choice.kind in ("json-schema", "ext-json"):
                assert self._registers.value is not None
                schema = flat_schema(self.view, spec, self._envelope.value_modes)
                rows = FramedValues(rows, *json_ends(self._registers.value, f"{spec.topic}-value", schema, choice))
            return RecordEncoder(spec, kind, key, rows, topics=topics, kept=kept)
        return RecordEncoder(spec, kind, key, null_value=self._null_value(spec), topics=topics, kept=kept)

    def _in_zones(self, zones: tuple[TimeZone, ...]) -> _Maker:
        """Return a maker of formats whose times are in these zones. It shares the keys, which no zone changes."""
        if zones not in self._of_zones:
            table = self.view.shape.id.table
            fields = [
                replace(field, zones=tuple(each.zone for each in zones if each.converts(table, field.name)))
                for field in self.view.fields
            ]
            maker = _Maker(replace(self.view, fields=tuple(fields)), self._envelope, self._registers)
            maker._keys, maker._ids, maker._registers = self._keys, self._ids, self._registers
            self._of_zones[zones] = maker
        return self._of_zones[zones]

    @property
    def _has_text_keys(self) -> bool:
        """Whether keys are texts. Behind the router of an outbox, keys of other tables are JSON."""
        routed = any(isinstance(step.transform, EventRouter) for step in self._envelope.transforms)
        return self._envelope.key.kind == "text" and not routed

    def _topics(self, spec: RecordSpec) -> RowTopics | CaseTopics | None:
        if spec.route is None:
            return None
        if isinstance(spec.route, CaseRoute):
            return CaseTopics(self.view, spec, spec.route, self._envelope.value_modes)
        return RowTopics(self.view, spec, spec.route, self._envelope.value_modes)

    def _kept(self, spec: RecordSpec) -> RowConditions | None:
        if not spec.conditions:
            return None
        return RowConditions(self.view, "condition", spec.conditions, self._envelope.value_modes)

    def _key(self, spec: RecordSpec) -> KeyFormat | None:
        takes = any(isinstance(each, TakeFromValue) for each in spec.key_edits)
        if not (self.view.key or takes):
            return None
        choice, modes = self._envelope.key, self._envelope.key_modes
        taken = self.view.fields if takes else ()
        same = (spec.topic, spec.key_name, spec.key_version, spec.key_fields, spec.key_edits, taken)
        if same not in self._keys:
            if spec.key_edits or spec.key_version is not None or self._has_text_keys:
                edited = EditedKeys(self.view, spec, self._envelope, choice, modes, self._registers.key)
                self._keys[same] = edited
                return edited
            if self._envelope.value in FRAMES:
                # These are not the keys that Kafka would get. An update that changes a column that tells rows apart is
                # a deletion and an insertion, also where the settings give both rows one key, or name other columns.
                self._keys[same] = JsonRows(self.view.identity_fields, EXACT)
            elif choice.kind == "avro":
                assert self._registers.key is not None
                self._keys[same] = avro_keys(self.view, spec, self._envelope, self._registers.key)
            elif choice.kind == "protobuf":
                assert self._registers.key is not None
                self._keys[same] = proto_keys(self.view, spec, self._envelope, self._registers.key)
            else:
                schema = key_schema(self.view, spec, modes)
                rows = JsonRows(self.view.key, modes, schema if choice.schemas else None, constants=spec.key_fields)
                self._keys[same] = rows
                if choice.kind in ("json-schema", "ext-json"):
                    assert self._registers.key is not None
                    ends = json_ends(self._registers.key, f"{spec.topic}-key", schema, choice)
                    self._keys[same] = FramedKeys(rows, *ends)
        return self._keys[same]

    def _envelope_format(self, spec: RecordSpec) -> EnvelopeFormat:
        choice, modes = self._envelope.value, self._envelope.value_modes
        if choice in FRAMES:
            return FrameValues(self.view, modes, choice)
        if choice.kind == "avro":
            assert self._registers.value is not None
            return AvroValues(self.view, spec, self._envelope, self._registers.value)
        if choice.kind == "cloudevents":
            return CloudEvents(self.view, self._envelope, row_schema(self.view, spec, modes), spec.read_op)
        if choice.kind == "protobuf":
            assert self._registers.value is not None
            return ProtoValues(self.view, spec, self._envelope, self._registers.value)
        schema = envelope_schema(self.view, spec, modes)
        written = schema if choice.schemas else None
        envelopes = JsonValues(self.view, self._envelope, written, envelope_constants(spec), spec.read_op)
        if choice.kind not in ("json-schema", "ext-json"):
            return envelopes
        assert self._registers.value is not None
        return FramedEnvelopes(envelopes, *json_ends(self._registers.value, f"{spec.topic}-value", schema, choice))

    def _rows(self, spec: RecordSpec) -> JsonRows | AvroRows | ProtoRows:
        choice, modes = self._envelope.value, self._envelope.value_modes
        schema = flat_schema(self.view, spec, modes)
        if choice.kind == "avro":
            assert self._registers.value is not None
            head = schema_head(self._registers.value, f"{spec.topic}-value", schema, choice.frame)
            return AvroRows(self.view.shape.id, self.view.fields, modes, head, added=spec.fields)
        if choice.kind == "protobuf":
            assert self._registers.value is not None
            style = choice.proto_style
            head = proto_head(self._registers.value, f"{spec.topic}-value", schema, style)
            return ProtoRows(self.view.shape.id, self.view.fields, modes, head, style, added=spec.fields)
        return JsonRows(self.view.fields, modes, schema if choice.schemas else None, added=spec.fields)

    def _null_value(self, spec: RecordSpec) -> bytes | None:
        """Return the bytes in place of a missing value, or None for no bytes.

        JSON writes a null that has a schema as a text; Avro and Protobuf write no bytes.
        """
        choice = self._envelope.value
        if spec.value is ValueShape.NOTHING or choice.is_registered or choice.kind == "cloudevents":
            return None
        schema = row_schema(self.view, spec, self._envelope.value_modes) if choice.schemas else None
        if schema is not None:
            # Of all edits only a TimestampConverter and a SetSchemaMetadata change the schema of a missing value.
            times = [edit for edit in spec.edits if isinstance(edit, ConvertTimestamp)]
            fields = tuple(column_field(field, self._envelope.value_modes) for field in self.view.fields)
            behind = edited(Whole(schema, fields), times, self.view.shape.id).fields if times else ()
            schema = replace(
                schema,
                fields=tuple((each.name, each.schema) for each in behind) or schema.fields,
                version=schema.version if spec.value_version is None else spec.value_version,
            )
        head, tail = around(schema)
        return f"{head}null{tail}".encode()


@lru_cache(maxsize=16)
def struct_format(choice: FormatChoice, register: Register | None = None) -> StructFormat:
    """Return the encoder for keys or for values that come one at a time.

    It is kept, because it knows its registered schemas.
    """
    if choice.kind == "avro":
        assert register is not None
        return AvroStructs(register, choice.frame)
    if choice.kind == "protobuf":
        assert register is not None
        return ProtoStructs(register, choice.proto_style)
    if choice.kind in ("json-schema", "ext-json"):
        assert register is not None
        return FramedStructs(JsonStructs(schemas=False), register, choice)
    return NoEvents() if choice.kind == "cloudevents" else JsonStructs(schemas=choice.schemas)


def _refuse_other_than_envelopes(spec: RecordSpec) -> None:
    """Raise ConfigError if CloudEventsConverter would get something else than Debezium's envelope."""
    if spec.value is ValueShape.ROW or spec.edits or spec.value_version is not None:
        raise ConfigError(
            f"A transform changes the values of {spec.topic}, and CloudEventsConverter needs Debezium's envelope",
            "Debezium's class would send records without values. Remove the transform of values, such as"
            " ExtractNewRecordState, or set JsonConverter.",
        )
