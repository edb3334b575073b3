"""The reading of records: a row, a deletion or a tombstone, and the place of its event, as columns.

Rows stay the bytes that stand in the record, and nothing is parsed. Envelopes are found by the places of their fields
(`incsnap.verify.envelope_spans`), other forms by one pass of RE2 over the values.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray, RecordBatch
from incsnap.columns.gather import binary
from incsnap.columns.hashing import spans_of
from incsnap.columns.packets import Spans
from incsnap.config.settings import Formats, Settings
from incsnap.connect.json_text import literal
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.envelope.record_encoder import READ, Operation
from incsnap.envelope.table_format import TableFormat
from incsnap.errors import ConfigError
from incsnap.transforms.record_spec import CastFields, FlattenFields, KeepFields, RecordSpec, ValueShape
from incsnap.verify.avro_reading import NO_JSON, AvroSchemas, as_json, respelled
from incsnap.verify.edited_form import EditedRows, NotRepeatable, rows_as_edited
from incsnap.verify.edited_reading import edited_rows
from incsnap.verify.envelope_spans import find_envelopes

#: The values of the column `state`. The record of a TRUNCATE has no key.
ROW, DELETION, TOMBSTONE, UNREADABLE, TRUNCATED = range(5)
#: The columns that `read_values` makes. `file`, `pos`, `row_number`: place of the event; null without one.
VALUES = pa.schema(
    [
        ("state", pa.int8()),
        ("row", pa.binary()),
        ("is_snapshot", pa.bool_()),
        ("file", pa.string()),
        ("pos", pa.int64()),
        ("row_number", pa.int64()),
    ]
)

_TEXT = r'"(?:[^"\\]|\\.)*"'
_FLAT = rf'\{{(?:[^{{}}"]|{_TEXT})*\}}'
#: A JSON object that contains objects, such as a geometry, but none in these.
_OBJECT = rf'\{{(?:[^{{}}"]|{_TEXT}|{_FLAT})*\}}'
_SIMPLE = rf"(?:{_TEXT}|[^\",{{}}]+)"
_DELETED = {"__deleted": '"true"'}
_PAYLOAD = r'^\{"schema":.*?,"payload":'
_NUMBERED = r'^\{"schemaId":[0-9]+,"payload":'
#: Bytes before JSON that has the id of its schema: a zero byte and the id.
_HEAD = 5
_ENVELOPE = (
    rf'\{{"before":(?:null|{_OBJECT}),"after":(?P<after>null|{_OBJECT}),"source":(?P<source>{_OBJECT}),'
    r'.*?"op":"(?P<op>[a-z])"'
)
# A job that has just begun knows no file, and its rows of a snapshot name none.
_SOURCE = (
    r'"snapshot":(?:null|"?(?P<snapshot>[a-z_]+)"?),.*?'
    r'"file":"(?P<file>[^"]+)","pos":(?P<pos>[0-9]+),"row":(?P<row>[0-9]+)'
)


_SNAPSHOT = r'"snapshot":"?(?P<snapshot>[a-z_]+)"?'
_TABLE = rf'"db":(?P<db>{_TEXT}),.*?"table":(?P<table>{_TEXT})'


@dataclass(frozen=True, slots=True)
class RecordForm:
    """The form of a topic's records, as far as their reading depends on it."""

    envelope: bool  #: False: unwrapped rows
    key_schemas: bool  #: keys contain their schema
    schemas: bool  #: values contain their schema
    edited: EditedRows = field(default_factory=EditedRows)  #: the members of an unwrapped row that are no columns
    tombstones: bool = True  #: a tombstone follows each deletion
    key_avro: AvroSchemas | None = None  #: where the keys' schemas are, if keys are Avro
    value_avro: AvroSchemas | None = None  #: where the values' schemas are, if values are Avro
    #: form of the id of a schema beside JSON: json-schema or ext-json, as in `FormatChoice.kind`; "" for none
    key_frame: str = ""
    value_frame: str = ""  #: as `key_frame`
    respelled: bool = False  #: rows and keys are spelled anew, as those of Avro are
    ambiguous: bool = False  #: a column has the name of a field of the envelope
    #: Names of the fields that show values as DOUBLEs, whatever types their columns have. Tables of one topic may have
    #: different ones.
    doubles: tuple[str, ...] = field(default=(), compare=False)

    @property
    def of_table(self) -> RecordForm:
        """The form in which the table side encodes its rows: plain JSON, because others would register schemas."""
        is_avro = self.key_avro is not None or self.value_avro is not None
        return replace(self, key_avro=None, value_avro=None, key_frame="", value_frame="", respelled=is_avro)

    @classmethod
    def of(cls, format_: TableFormat, formats: Formats) -> RecordForm:
        """Return the form of a table's records. Raise ConfigError for a form that verify cannot read.

        `format_` is the table side's, whose settings are those of `for_table`. `formats` are the topics' formats.
        """
        table, choice = format_.view.shape.id, format_.envelope
        for where, given in (("keys", formats.key), ("values", formats.value)):
            if given.kind not in ("json", "avro", *_FRAMED):
                raise ConfigError(f"{table}: verify cannot read {where} of the format {given.kind}", _NOT_YET)
        encoders = [format_.encoders.get(kind) for kind in (READ, *(Operation(op) for op in "cu"))]
        first = encoders[0]
        if first is None or any(each is None for each in encoders) or not format_.uniform:
            raise ConfigError(f"{table}: transforms drop or move records of this table", _REFUSED)
        specs = [each.spec for each in encoders if each is not None]
        if any(each.kept is not None or each.topics is not None or each.event is not None for each in encoders if each):
            raise ConfigError(f"{table}: the values of its rows decide which records are sent, and where", _REFUSED)
        if {spec.value for spec in specs} not in ({ValueShape.ENVELOPE}, {ValueShape.ROW}):
            raise ConfigError(f"{table}: transforms leave neither envelopes nor rows", _REFUSED)
        if format_.encoders.get(Operation("d")) is None and "d" not in choice.skipped:
            raise ConfigError(f"{table}: transforms drop deletions, so its topic keeps rows that are gone", _REFUSED)
        if formats.value.kind == "avro" and any(map(_casts_to_single, specs)):
            raise ConfigError(f"{table}: Cast to float32 is not compared in Avro", _REFUSED)
        try:
            edited = rows_as_edited(format_, specs)
        except NotRepeatable as error:
            raise ConfigError(f"{table}: {error}", _REFUSED) from None
        tombstone = format_.encoders.get(Operation(""))
        tombstones = choice.tombstones and tombstone is not None and not tombstone.has_bytes
        is_envelope = first.spec.value is ValueShape.ENVELOPE
        if is_envelope and first.spec.read_op != "r":
            raise ConfigError(f"{table}: ReadToInsertEvent shows rows of snapshots as insertions", _REFUSED)
        ambiguous = any(each.name in _ENVELOPES_OWN for each in format_.view.fields)
        form = cls(is_envelope, choice.key.schemas, choice.value.schemas, edited, tombstones, ambiguous=ambiguous)
        framed = [given.kind if given.kind in _FRAMED else "" for given in (formats.key, formats.value)]
        form = replace(form, key_frame=framed[0], value_frame=framed[1], doubles=_doubles(format_, first.spec))
        if formats.key.kind == "avro":
            form = replace(form, key_avro=AvroSchemas.of(formats.key_registry, formats.key.frame), respelled=True)
        if formats.value.kind == "avro":
            form = replace(form, value_avro=AvroSchemas.of(formats.value_registry, formats.value.frame), respelled=True)
        return form


def _casts_to_single(spec: RecordSpec) -> bool:
    """Whether a Cast makes numbers of single precision. No test has compared such numbers in Avro."""
    casts = [edit for edit in spec.edits if isinstance(edit, CastFields)]
    return any(target == "float32" for edit in casts for _, target in edit.types)


def _doubles(format_: TableFormat, spec: RecordSpec) -> tuple[str, ...]:
    """Return the names of the fields that show values as DOUBLEs, behind all edits."""
    types = ("double", "decimal") if format_.envelope.modes.decimal_handling == "double" else ("double",)
    names = {field.name for field in format_.view.fields if field.column.type in types}
    points = {field.name for field in format_.view.fields if field.column.type == "point"}
    for edit in spec.edits:
        if isinstance(edit, CastFields):
            names |= {name for name, target in edit.types if target == "float64"}
        elif isinstance(edit, KeepFields):
            renames = dict(edit.renames)
            names, points = ({renames.get(name, name) for name in some} for some in (names, points))
        elif isinstance(edit, FlattenFields):
            names |= {f"{name}{edit.delimiter}{axis}" for name in points for axis in "xy"}
    return tuple(sorted(names))


#: Names that the text of an envelope is searched for.
_ENVELOPES_OWN = ("after", "source", "op")
_NOT_YET = "verify reads JSON, JSON with the id of its schema, and Avro."
#: Kinds of JSON with the id of a schema.
_FRAMED = ("json-schema", "ext-json")
_REFUSED = "Leave the table out with --table: verify cannot repeat these transforms."


def for_table(settings: Settings) -> Settings:
    """Return the settings with which the table side encodes rows: JSON, as other formats would register schemas."""
    changed = {
        name: FormatChoice(decimals=choice.decimals)
        for name, choice in (("key", settings.formats.key), ("value", settings.formats.value))
        if choice.kind != "json" or choice.frame
    }
    return settings.model_copy(update={"formats": settings.formats.model_copy(update=changed)}) if changed else settings


def read_keys(keys: BytesArray, form: RecordForm) -> BytesArray:
    """Return the keys as JSON without their schemas."""
    if form.key_avro is not None:
        return as_json(keys, form.key_avro)
    bare = _without_schema(keys) if form.key_schemas else _without_frame(keys, form.key_frame)
    return respelled(bare, form.doubles) if form.respelled else bare


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The values of records: the state of each, and where its row lies."""

    state: npt.NDArray[np.int8]  #: one of the values of `state` for each record
    rows: Spans  #: rows; length 0 for a record without one
    is_snapshot: npt.NDArray[np.bool_]  #: whether a snapshot has read the row
    places: tuple[Array, Array, Array] | None = None  #: columns file, pos and row_number of VALUES; None: not asked for
    sources: Spans | None = None  #: texts that have `source`; length 0 for a record without one; None: no envelopes

    @property
    def rows_or_null(self) -> BytesArray:
        """Return the rows as `pa.binary()`, null for a record without one."""
        rows = binary(self.rows)
        is_row = self.state == ROW
        return rows if is_row.all() else pc.if_else(pa.array(is_row), rows, None)

    def source_columns(self) -> tuple[Array, Array]:
        """Return `source.snapshot` of each record, and its table as db.table. Both are null if the record has none."""
        if self.sources is None:
            absent = pa.nulls(len(self.state), pa.string())
            return absent, absent
        texts = binary(self.sources)
        snapshot = pc.struct_field(pc.extract_regex(texts, _SNAPSHOT), "snapshot").cast(pa.string())
        parts = pc.extract_regex(texts, _TABLE)
        names = [pc.struct_field(parts, name) for name in ("db", "table")]
        # The names are texts of JSON. Most records have the same ones.
        listed = pc.binary_join_element_wise(*names, b",").dictionary_encode()
        tables = [".".join(json.loads(b"[%s]" % each)) for each in listed.dictionary.to_pylist()]
        return snapshot, pa.array(tables, pa.string()).take(listed.indices)


def read(values: BytesArray, form: RecordForm, *, places: bool = True) -> Reading:
    """Return what the values of records say; a null is a tombstone."""
    if form.value_avro is not None:
        values = as_json(values, form.value_avro)
    envelopes = None
    if form.envelope and not form.ambiguous:
        # The names are not in schemas, so these may stay.
        envelopes = find_envelopes(_without_frame(values, form.value_frame))
    named = envelopes.places() if envelopes is not None and places else None
    if envelopes is None or (places and named is None):
        return _read_by_patterns(values, form, places=places)
    kinds = [envelopes.kinds == 0, envelopes.is_row, envelopes.kinds == ord("t")]
    state = np.select(kinds, [TOMBSTONE, ROW, TRUNCATED], DELETION).astype(np.int8)
    rows = envelopes.rows
    if form.respelled and form.value_avro is None:
        rows = spans_of(respelled(binary(rows), form.doubles))
    return Reading(state, rows, envelopes.kinds == ord("r"), named, envelopes.sources)


def read_values(values: BytesArray, form: RecordForm) -> RecordBatch:
    """Return the columns of VALUES for the values of records; null is a tombstone."""
    envelopes = read(values, form)
    assert envelopes.places is not None
    arrays = [pa.array(envelopes.state), envelopes.rows_or_null, pa.array(envelopes.is_snapshot), *envelopes.places]
    return pa.RecordBatch.from_arrays(arrays, schema=VALUES)


def payload_of(values: BytesArray, form: RecordForm) -> BytesArray:
    """Return the values as JSON without their schemas. Values of another form become bytes that are no JSON."""
    return as_json(values, form.value_avro) if form.value_avro is not None else _bare(values, form)


def _bare(values: BytesArray, form: RecordForm) -> BytesArray:
    return _without_schema(values) if form.schemas else _without_frame(values, form.value_frame)


def read_rows(values: BytesArray, form: RecordForm) -> tuple[Array, BytesArray]:
    """Return the columns `state` and `row` of `read_values`, in less time."""
    envelopes = read(values, form, places=False)
    return pa.array(envelopes.state), envelopes.rows_or_null


def _read_by_patterns(values: BytesArray, form: RecordForm, *, places: bool) -> Reading:
    """Return what values of any form say, in ten times the time of `find_envelopes`."""
    payload, absent = _bare(values, form), values.is_null()
    batch, source = _envelopes(payload, absent) if form.envelope else (_rows(payload, absent, form), None)
    rows = batch.column("row")
    if form.respelled and form.value_avro is None:
        rows = respelled(rows, form.doubles)
    named = (batch.column("file"), batch.column("pos"), batch.column("row_number")) if places else None
    is_read = np.asarray(batch.column("is_snapshot").to_numpy(zero_copy_only=False))
    sources = None if source is None else spans_of(source)
    return Reading(batch.column("state").to_numpy(), spans_of(rows), is_read, named, sources)


def _without_frame(values: BytesArray, frame: str) -> BytesArray:
    """Return JSON without the id of its schema. Records of another form become bytes that are no JSON."""
    if not frame:
        return values
    if frame == "json-schema":
        return pc.if_else(pc.starts_with(values, "\x00"), pc.binary_replace_slice(values, 0, _HEAD, b""), NO_JSON)
    bare = _without_schema(values, _NUMBERED)
    return pc.if_else(pc.equal(bare, values), NO_JSON, bare)


def _without_schema(values: BytesArray, before: str = _PAYLOAD) -> BytesArray:
    bare = pc.replace_substring_regex(values, before, "", max_replacements=1)
    stripped = pc.binary_slice(bare, 0, -1)
    return pc.if_else(pc.equal(bare, values), values, stripped)


def _envelopes(payload: BytesArray, absent: BytesArray) -> tuple[RecordBatch, BytesArray]:
    """Return the columns of VALUES, and the texts of `source`."""
    parts = pc.extract_regex(payload, "^" + _ENVELOPE)
    after, op = pc.struct_field(parts, "after"), pc.struct_field(parts, "op")
    matched = pc.and_(parts.is_valid(), pc.is_in(op, pa.array([b"c", b"u", b"r", b"d", b"t"])).fill_null(False))
    text = pc.struct_field(parts, "source")
    source = pc.extract_regex(text, _SOURCE)
    is_row = pc.and_(matched, pc.is_in(op, pa.array([b"c", b"u", b"r"]))).fill_null(False)
    others = pc.if_else(matched, pc.if_else(pc.equal(op, b"t"), TRUNCATED, DELETION), UNREADABLE)
    state = pc.if_else(absent, TOMBSTONE, pc.if_else(is_row, ROW, others))
    batch = pa.RecordBatch.from_arrays(
        [
            state.cast(pa.int8()),
            pc.if_else(is_row, after, None),
            pc.equal(op, b"r").fill_null(False),
            pc.struct_field(source, "file").cast(pa.string()),
            pc.struct_field(source, "pos").cast(pa.string()).cast(pa.int64()),
            pc.struct_field(source, "row").cast(pa.string()).cast(pa.int64()),
        ],
        schema=VALUES,
    )
    return batch, text


def _rows(payload: BytesArray, absent: BytesArray, form: RecordForm) -> RecordBatch:
    edited = form.edited
    if not edited.at_end:
        rows, deleted = edited_rows(payload, edited, form.doubles)
    elif edited.added:
        # The added members stand behind the columns, in their order, and have simple values.
        behind = "".join(rf",?{literal(name)}:{_SIMPLE}" for name in edited.added) + r"\}$"
        rows = pc.replace_substring_regex(payload, behind, "}")
        deletes = "".join(rf",?{literal(name)}:{_DELETED.get(name, _SIMPLE)}" for name in edited.added) + r"\}$"
        deleted = pc.match_substring_regex(payload, deletes).fill_null(False) if edited.deleted else None
    else:
        rows, deleted = payload, None
    deleted = pa.array([False] * len(payload)) if deleted is None else deleted
    is_object = pc.starts_with(payload, "{").fill_null(False)
    is_row = pc.and_(is_object, pc.invert(deleted))
    # A converter writes a null that has a schema as a text.
    is_known = pc.or_(is_object, pc.equal(payload, b"null").fill_null(False))
    state = pc.if_else(absent, TOMBSTONE, pc.if_else(is_row, ROW, pc.if_else(is_known, DELETION, UNREADABLE)))
    n = len(payload)
    return pa.RecordBatch.from_arrays(
        [
            state.cast(pa.int8()),
            pc.if_else(is_row, rows, None),
            pa.array([False] * n),
            pa.nulls(n, pa.string()),
            pa.nulls(n, pa.int64()),
            pa.nulls(n, pa.int64()),
        ],
        schema=VALUES,
    )
