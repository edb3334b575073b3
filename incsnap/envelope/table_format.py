"""What makes a table's rows into what its topics hold: the view of the table, and formats for keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.envelope.avro_format import AvroKeys, AvroStructs, AvroValues, Register
from incsnap.envelope.connect_envelope import envelope_schema, key_schema, row_schema
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.flat_rows import AvroRows, FlatRows, JsonRows, flat_schema
from incsnap.envelope.format import EnvelopeFormat, JoinedFormat, KeyFormat, StructFormat, ValueFormat
from incsnap.envelope.frame_format import IMAGES, ROW, FrameKeys, FrameValues
from incsnap.envelope.json_format import JsonKeys, JsonStructs, JsonValues, around
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.outbox_events import EventFormat
from incsnap.envelope.partitioner import partition
from incsnap.envelope.row_topics import RowTopics
from incsnap.envelope.table_view import Columns, TableView, view_of
from incsnap.envelope.written import Kind, Written, forms, topics
from incsnap.tables import TableShape
from incsnap.transforms.chain import refusal_of_updates
from incsnap.transforms.form import Form, Value, change_form


@dataclass(frozen=True, slots=True)
class Registers:
    """Where the Avro schemas of keys and of values are registered; unused for JSON."""

    key: Register | None = None
    value: Register | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TableFormat:
    """``topic``: by whose partitions buckets are chosen. ``written``: None where records of that kind are dropped.

    ``alike``: all that are sent have one topic and one form of key. Else ``key``, by which buckets are chosen, is none
    that is sent. None for a table whose records have no key.
    """

    view: TableView
    topic: str
    envelope: EnvelopeSettings
    alike: bool
    key: KeyFormat | None
    written: Mapping[Kind, Written | None]
    #: Are rows events?  Then the table has one bucket: events of one key, whichever rows they are in, stay in order.
    routed: bool = False
    #: What is to be done about an update that is no event: warn, error or fatal; "" where there is none.
    updates: str = ""
    #: Of a record what does not grow with the values of its row: names of columns, a schema. About, and 0 for an event.
    literal_bytes: int = 0

    @property
    def key_identifies(self) -> bool:
        """Whether equal bytes of ``key`` mean equal rows, and unequal bytes unequal ones.

        Not where the bytes depend on the key's schema: a window's rows and events may have it before and behind an
        ALTER of a column's DEFAULT.
        """
        plain = isinstance(self.key, FrameKeys) or (isinstance(self.key, JsonKeys) and not self.key.has_schema)
        return plain and self.view.key_is_identity

    def home(self, keys: Any, partitions: Mapping[str, int]) -> npt.NDArray[np.int32]:
        """The partition of ``topic`` that decides each key's bucket; ``keys`` as the method of that name gives them."""
        return partition(keys, 1 if self.routed else partitions.get(self.topic, 1))

    def keys(self, columns: Columns) -> Any:
        """``pa.binary()``, of each row."""
        return pa.nulls(rows_of(columns), pa.binary()) if self.key is None else self.key.keys(columns)


@lru_cache(maxsize=4096)
def table_format(
    shape: TableShape, topic: str, envelope: EnvelopeSettings, registers: Registers = Registers()
) -> TableFormat:
    """Made once per shape of a table and process; ``topic`` is the table's before transforms. May ask the registry:
    then its errors come from here, as ``ConfigError`` of a transform that cannot be asked.
    """
    maker = _Maker(view_of(shape, envelope.rules), envelope, registers)
    form_of = forms(topic, envelope.transforms, envelope.schema_names)
    known: dict[Form, Written] = {}
    written: dict[Kind, Written | None] = {}
    for kind, form in form_of.items():
        if form is not None and form.written not in known:
            known[form.written] = maker.written(form.written)
        written[kind] = None if form is None else known[form.written]
    home = (*topics(topic, envelope.transforms, envelope.schema_names), topic)[0]
    sent = list(known.values())
    routed = any(one.event is not None for one in sent)
    by_rows = routed or any(one.topics is not None for one in sent)
    alike = not by_rows and len({(one.form.topic, one.key) for one in sent}) == 1
    updates = refusal_of_updates(envelope.transforms, change_form(topic, "u", envelope.schema_names))
    key = sent[0].key if alike else maker.own_key()
    literal_bytes = max((_literal_bytes(one.value) for one in sent), default=0)
    return TableFormat(maker.view, home, envelope, alike, key, written, routed, updates, literal_bytes)


def _literal_bytes(values: ValueFormat | None) -> int:
    if not isinstance(values, JoinedFormat):
        return 0
    pattern = values.pattern()
    # A cell is two bytes of the template, and "null" four.
    return len(pattern.template) + 2 * len(pattern.cells) + values.constant_bytes


class _Maker:
    """Each format is made once: Avro's ask the registry."""

    def __init__(self, view: TableView, envelope: EnvelopeSettings, registers: Registers) -> None:
        self.view, self._envelope, self._registers = view, envelope, registers
        self._keys: dict[tuple[object, ...], KeyFormat | None] = {}

    def own_key(self) -> KeyFormat | None:
        """The key's format from the columns alone, as no transform has changed it."""
        return JsonKeys(self.view, self._envelope, None) if self.view.key else None

    def written(self, form: Form) -> Written:
        if form.event is not None:
            event = EventFormat(self.view, form.event, self._envelope)
            return Written(form, event, event, event=event)
        written = self._of_row(form)
        if form.route is None:
            return written
        return replace(written, topics=RowTopics(self.view, form, form.route, self._envelope.value_modes))

    def _of_row(self, form: Form) -> Written:
        key = self._key(form)
        if form.value is Value.ENVELOPE:
            envelope = self._envelope_format(form)
            return Written(form, key, envelope, envelope)
        if form.value is Value.ROW:
            return Written(form, key, FlatRows(self.view.shape.id, form, self._envelope, self._rows(form)))
        return Written(form, key, nothing=self._nothing(form))

    def _key(self, form: Form) -> KeyFormat | None:
        if not self.view.key:
            return None
        choice, modes = self._envelope.key, self._envelope.key_modes
        same = (form.topic, form.key_name, form.key_fields)
        if same not in self._keys:
            if self._envelope.value in (ROW, IMAGES):
                self._keys[same] = FrameKeys(self.view)
            elif choice.kind == "avro":
                assert self._registers.key is not None
                self._keys[same] = AvroKeys(self.view, form, self._envelope, self._registers.key)
            else:
                schema = key_schema(self.view, form, modes) if choice.schemas else None
                self._keys[same] = JsonKeys(self.view, self._envelope, schema, form.key_fields)
        return self._keys[same]

    def _envelope_format(self, form: Form) -> EnvelopeFormat:
        choice, modes = self._envelope.value, self._envelope.value_modes
        if choice in (ROW, IMAGES):
            return FrameValues(self.view, images=choice == IMAGES)
        if choice.kind == "avro":
            assert self._registers.value is not None
            return AvroValues(self.view, form, self._envelope, self._registers.value)
        schema = envelope_schema(self.view, form, modes) if choice.schemas else None
        return JsonValues(self.view, self._envelope, schema)

    def _rows(self, form: Form) -> JsonRows | AvroRows:
        choice, modes = self._envelope.value, self._envelope.value_modes
        if choice.kind == "avro":
            assert self._registers.value is not None
            return AvroRows(self.view, form, modes, self._registers.value)
        schema = flat_schema(self.view, form, modes)
        return JsonRows(self.view, form, modes, schema if choice.schemas else None)

    def _nothing(self, form: Form) -> bytes | None:
        """What stands for no value: JSON writes a null that has a schema as a text, Avro as no bytes."""
        choice = self._envelope.value
        if form.value is Value.NOTHING or choice.kind == "avro":
            return None
        schema = row_schema(self.view, form, self._envelope.value_modes) if choice.schemas else None
        head, tail = around(schema)
        return f"{head}null{tail}".encode()


@lru_cache(maxsize=16)
def struct_format(choice: FormatChoice, register: Register | None = None) -> StructFormat:
    """For keys or for values that come one at a time. Kept, because it knows the schemas it has registered."""
    if choice.kind == "avro":
        assert register is not None
        return AvroStructs(register)
    return JsonStructs(schemas=choice.schemas)
