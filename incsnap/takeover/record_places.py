"""The places of a connector's records in the binlog: which part of a record shows them, and how they are read.

An envelope has them in `source`. An unwrapped row has them if the transform adds them: as fields (`add.fields`) or as
headers (`add.headers`). A deletion that has lost its row has no fields, so only headers show its place.

Several connectors may write to one topic, as those of shards behind a router do. An envelope names its connector, and
those of others are left out. An unwrapped row does not name it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray, RecordBatch
from incsnap.config.settings import Formats
from incsnap.connect.json_text import literal
from incsnap.envelope.record_encoder import READ, TRUNCATION, Operation
from incsnap.envelope.table_format import TableFormat
from incsnap.errors import ConfigError
from incsnap.transforms.record_spec import Added, Constant, EnvelopeField, Inserted, RecordSpec
from incsnap.transforms.record_spec import ValueShape as Shape
from incsnap.verify.avro_reading import AvroSchemas, as_json
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE, UNREADABLE, RecordForm, payload_of, read_values

#: The columns of records with places. `key` has the bytes of the record. `file`, `pos` and `row_number` are null for a
#: record that shows no place. `gtid` is null for one that is no envelope.
RECORD_PLACES = pa.schema(
    [
        ("key", pa.binary()),
        ("offset", pa.int64()),
        ("state", pa.int8()),
        ("is_snapshot", pa.bool_()),
        ("file", pa.string()),
        ("pos", pa.int64()),
        ("row_number", pa.int64()),
        ("gtid", pa.string()),
    ]
)
_READABLE = ("json", "json-schema", "ext-json", "avro")
#: What an unwrapped row must show. `op` or `snapshot` tells rows of a snapshot from changes. Behind a ReadToInsertEvent
#: only `snapshot` does.
_SHOWN = (("source", "file"), ("source", "pos"), ("source", "row"), ("", "op"), ("source", "snapshot"))
#: The beginning of an envelope's `source`. It is not in a text, whose quotes have backslashes, nor in a schema.
_SOURCE = r',"source":\{"version":"[^"]*","connector":"[^"]*","name":(?P<name>"(?:[^"\\]|\\.)*")'
_SOURCE += r'(?:[^}]*?"gtid":"(?P<gtid>[^"]*)")?'
#: The snapshot of an envelope's `source`. It is "false" or missing for a change.
_SNAPSHOT = r',"source":\{"version":"[^"]*","connector":"[^"]*","name":"(?:[^"\\]|\\.)*","ts_ms":[0-9]+'
_SNAPSHOT += r',"snapshot":"?(?P<snapshot>[a-z_]+)'
#: The repair where places are missing.
ADD_PLACES = "add.headers=op,source.file,source.pos,source.row shows them"


@dataclass(frozen=True, slots=True)
class PlaceForm:
    """The form of a topic's records, as far as their places depend on it."""

    values: RecordForm  #: form of the values
    name: str = ""  #: topic.prefix of the connector
    fields: dict[tuple[str, str], str] = field(default_factory=dict)  #: names of added fields, by struct and field
    headers: dict[tuple[str, str], str] = field(default_factory=dict)  #: names of added headers, by struct and field
    #: A tombstone follows a deletion. Otherwise a record without a value is a deletion.
    has_tombstones: bool = True
    #: Some rows of an event may have no record. Tables of one topic may differ in this.
    drops_rows: bool = field(default=False, compare=False)
    #: False: rows of a snapshot may have the operation of insertions (ReadToInsertEvent). Tables of a topic may differ.
    op_tells_reads: bool = field(default=True, compare=False)
    #: The topic also has schema changes, transactions or heartbeats: a router sends them there.
    has_others: bool = field(default=False, compare=False)

    @property
    def shown(self) -> dict[tuple[str, str], str]:
        """The names that show the place of an unwrapped row, by struct and field."""
        return self.headers if _has_place(self.headers) else self.fields

    @property
    def is_exact(self) -> bool:
        """Whether places tell the row of an event. Otherwise they only tell the event."""
        return self.values.envelope or (("source", "row") in self.shown and self.tells_reads)

    @property
    def tells_reads(self) -> bool:
        """Whether records tell rows of a snapshot from changes. Otherwise all count as changes."""
        fields = {_SHOWN[4], *([_SHOWN[3]] if self.op_tells_reads else [])}
        return self.values.envelope or bool(fields & set(self.shown))

    def with_table(self, other: PlaceForm) -> PlaceForm:
        """Return the form of a topic that also has the records of a table of the form `other`, which is equal."""
        return replace(
            self,
            drops_rows=self.drops_rows or other.drops_rows,
            op_tells_reads=self.op_tells_reads and other.op_tells_reads,
        )

    @classmethod
    def of(cls, format_: TableFormat, formats: Formats) -> PlaceForm:
        """Return the form of a table's records. Raise ConfigError if they show no places.

        `format_` is that of JSON. `formats` are the topics' formats.
        """
        choice = formats.value
        if choice.kind not in _READABLE or choice.frame:
            raise ConfigError(f"values of the format {choice.kind} {choice.frame}".rstrip())
        encoders = [
            each for operation, each in format_.encoders.items() if each is not None and operation != TRUNCATION
        ]
        specs = [each.spec for each in encoders]
        if any(each.event is not None for each in specs):
            raise ConfigError("outbox events show no places; their header `id` tells repetitions")
        if any(each.topics is not None for each in encoders):
            raise ConfigError("the values of the rows choose their topics")
        shapes = {each.value for each in specs} - {Shape.NOTHING, Shape.EMPTY_ROW}
        if shapes not in ({Shape.ENVELOPE}, {Shape.ROW}):
            raise ConfigError("transforms leave neither envelopes nor rows")
        values = RecordForm(
            envelope=shapes == {Shape.ENVELOPE},
            key_schemas=False,
            schemas=choice.schemas,
            value_avro=AvroSchemas.of(formats.value_registry, choice.frame) if choice.kind == "avro" else None,
            value_frame=choice.kind if choice.kind in ("json-schema", "ext-json") else "",
        )
        read = format_.encoders.get(READ)
        op_tells_reads = read is None or read.spec.read_op == "r"
        has_tombstones = format_.envelope.tombstones and format_.encoders.get(Operation("")) is not None
        if values.envelope:
            if any(not isinstance(edit, EnvelopeField | Constant | Inserted) for each in specs for edit in each.edits):
                raise ConfigError("transforms edit the envelopes")
            name = format_.envelope.name
            return cls(values, name, has_tombstones=has_tombstones, op_tells_reads=op_tells_reads)
        row = next(each for each in specs if each.value is Shape.ROW)
        fields, headers = _names(_added(row)), _names(row.headers)
        drops_rows = _drops_rows(format_)
        form = cls(values, format_.envelope.name, fields, headers, has_tombstones, drops_rows, op_tells_reads)
        if not _has_place(form.shown):
            raise ConfigError(f"unwrapped rows do not show their places; {ADD_PLACES}")
        return form


def _drops_rows(format_: TableFormat) -> bool:
    """Return True if some rows of an event may have no record, while others have one."""
    kinds = (Operation("c"), Operation("u"), Operation("c", moved=True))
    is_dropped = any(format_.encoders.get(kind) is None for kind in kinds)
    kept = any(each is not None and each.kept is not None for each in format_.encoders.values())
    return is_dropped or kept or format_.envelope.skip_unchanged


def _added(row: RecordSpec) -> Sequence[Added]:
    """Return the fields that transforms add to a row."""
    return (*row.fields, *(each for each in row.edits if isinstance(each, EnvelopeField)))


def _names(added: Sequence[Added]) -> dict[tuple[str, str], str]:
    """Return the names of added fields that show a place, by struct and field."""
    of_envelope = [each for each in added if isinstance(each, EnvelopeField)]
    return {place: each.name for each in of_envelope if (place := (each.struct, each.field)) in _SHOWN}


def _has_place(names: Mapping[tuple[str, str], str]) -> bool:
    return ("source", "file") in names and ("source", "pos") in names


def record_places(messages: Sequence[Any], form: PlaceForm) -> RecordBatch:
    """Return records with their places: the columns of RECORD_PLACES, in the order of `messages`.

    Envelopes of other connectors are left out.
    """
    values = pa.array([each.value() for each in messages], pa.binary())
    own, gtids = None, pa.nulls(len(messages), pa.string())
    if form.values.envelope:
        if form.values.value_avro is not None:
            values = as_json(values, form.values.value_avro)
        own, gtids = _of_sources(values, form.name)
        read = read_values(values, replace(form.values, value_avro=None))
        columns = [read.column(name) for name in ("state", "is_snapshot", "file", "pos", "row_number")]
        if not form.op_tells_reads:
            columns[1] = pc.or_(columns[1], _are_of_snapshots(values))
    else:
        columns = _of_rows(messages, values, form)
    keys = pa.array([each.key() for each in messages], pa.binary())
    offsets = pa.array([each.offset() for each in messages], pa.int64())
    records = pa.RecordBatch.from_arrays([keys, offsets, *columns, gtids], schema=RECORD_PLACES)
    return records if own is None else records.filter(own)


def _of_sources(values: BytesArray, name: str) -> tuple[Array, Array]:
    """Return a mask of the envelopes of this connector and of values that name none, and the GTIDs of envelopes."""
    sources = pc.extract_regex(values, _SOURCE)
    is_own = pc.equal(pc.struct_field(sources, "name"), literal(name).encode()).fill_null(True)
    gtids = pc.struct_field(sources, "gtid").cast(pa.string())
    return is_own, pc.if_else(pc.equal(gtids, ""), None, gtids)


def _are_of_snapshots(values: BytesArray) -> Array:
    """Return True for each envelope whose `source` says that a snapshot has read the row."""
    snapshot = pc.struct_field(pc.extract_regex(values, _SNAPSHOT), "snapshot")
    return pc.invert(pc.is_in(snapshot, pa.array([b"false", b"null", None], pa.binary())))


def _of_rows(messages: Sequence[Any], values: BytesArray, form: PlaceForm) -> list[Array]:
    """Return the columns of unwrapped rows, behind `offset`."""
    payload, absent = payload_of(values, form.values), values.is_null()
    shown = _of_headers(messages, form.headers) if form.shown is form.headers else _of_fields(payload, form.fields)
    unknown = pa.nulls(len(messages), pa.string())
    op, snapshot = shown.get(("", "op"), unknown), shown.get(("source", "snapshot"), unknown)
    is_read = pc.or_(pc.equal(op, "r").fill_null(False), pc.not_equal(snapshot, "false").fill_null(False))
    is_deleted = pc.or_(
        pc.equal(_member(payload, "__deleted"), "true").fill_null(False),
        # A converter writes a null that has a schema as a text.
        pc.or_(pc.equal(op, "d"), pc.equal(payload, b"null")).fill_null(False),
    )
    state = pc.if_else(
        absent,
        TOMBSTONE if form.has_tombstones else DELETION,
        pc.if_else(is_deleted, DELETION, pc.if_else(pc.starts_with(payload, "{").fill_null(False), ROW, UNREADABLE)),
    )
    pos, row = (shown.get(("source", name), unknown).cast(pa.int64()) for name in ("pos", "row"))
    file = pc.if_else(pc.and_(pos.is_valid(), pc.not_equal(state, TOMBSTONE)), shown["source", "file"], None)
    return [state.cast(pa.int8()), is_read, file, pos, pc.fill_null(row, 0)]


def _of_headers(messages: Sequence[Any], names: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], Array]:
    """Return the texts of headers, by struct and field; null where a record has no such header."""
    given = [dict(each.headers() or ()) for each in messages]
    texts = {
        place: [None if (value := each.get(name)) is None else bytes(value).decode() for each in given]
        for place, name in names.items()
    }
    return {place: pa.array(each, pa.string()) for place, each in texts.items()}


def _of_fields(payload: BytesArray, names: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], Array]:
    """Return the texts of added fields, by struct and field; null where a record has no such field."""
    return {place: _member(payload, name) for place, name in names.items()}


def _member(payload: BytesArray, name: str) -> Array:
    """Return the texts of a member of JSON objects, the last one of that name; null where there is none."""
    pattern = rf'(?s)^.*{re.escape(literal(name))}:"?(?P<text>[^",{{}}]+)'
    member = pc.struct_field(pc.extract_regex(payload, pattern), "text")
    return pc.if_else(pc.equal(member, b"null"), None, member).cast(pa.string())
