"""What makes a table's rows into the bytes of its topic: the view of the table, and formats for keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from incsnap.envelope.avro_format import AvroKeys, AvroStructs, AvroValues, Register
from incsnap.envelope.connect_envelope import envelope_schema, key_schema
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.format import KeyFormat, StructFormat, ValueFormat
from incsnap.envelope.json_format import JsonKeys, JsonStructs, JsonValues
from incsnap.envelope.table_view import TableView, view_of
from incsnap.tables import TableShape


@dataclass(frozen=True, slots=True, eq=False)
class TableFormat:
    """``key`` is None for a table whose records have none."""

    view: TableView
    topic: str
    envelope: EnvelopeSettings
    key: KeyFormat | None
    value: ValueFormat


@dataclass(frozen=True, slots=True)
class Registers:
    """Where the Avro schemas of keys and of values are registered; unused for JSON."""

    key: Register | None = None
    value: Register | None = None


@lru_cache(maxsize=4096)
def table_format(
    shape: TableShape, topic: str, envelope: EnvelopeSettings, registers: Registers = Registers()
) -> TableFormat:
    """Made once per shape of a table and process. May ask the registry: then its errors come from here."""
    view = view_of(shape, envelope.rules)
    return TableFormat(
        view,
        topic,
        envelope,
        _keys(view, topic, envelope, registers.key),
        _values(view, topic, envelope, registers.value),
    )


def _keys(view: TableView, topic: str, envelope: EnvelopeSettings, register: Register | None) -> KeyFormat | None:
    if not view.key:
        return None
    choice = envelope.key
    if choice.kind == "avro":
        assert register is not None
        return AvroKeys(view, topic, envelope, register)
    return JsonKeys(view, envelope, key_schema(view, topic, envelope) if choice.schemas else None)


def _values(view: TableView, topic: str, envelope: EnvelopeSettings, register: Register | None) -> ValueFormat:
    choice = envelope.value
    if choice.kind == "avro":
        assert register is not None
        return AvroValues(view, topic, envelope, register)
    return JsonValues(view, envelope, envelope_schema(view, topic, envelope) if choice.schemas else None)


@lru_cache(maxsize=16)
def struct_format(choice: FormatChoice, register: Register | None = None) -> StructFormat:
    """For keys or for values that come one at a time. Kept, because it knows the schemas it has registered."""
    if choice.kind == "avro":
        assert register is not None
        return AvroStructs(register)
    return JsonStructs(schemas=choice.schemas)
