"""What all records of one kind have in common, and what a transform makes of it.

A transform of Kafka Connect is asked record by record. Those that are obeyed here look at nothing of a record but its
topic, its headers' names, its operation and whether it has a value; so they are asked once for each table and kind of
record, and what they answer is then done to whole columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from incsnap.connect.field_names import adjust

#: Headers of the two records that an update of the key becomes: on the first the new key, on the last the old one.
NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


class Value(Enum):
    """What a record's value is."""

    #: Debezium's envelope.
    ENVELOPE = "envelope"
    #: A row alone, with fields added.
    ROW = "row"
    #: No value, but the schema of a row.
    EMPTY_ROW = "empty row"
    #: Neither value nor schema: a tombstone.
    NOTHING = "nothing"
    #: What a row of an outbox table holds.
    EVENT = "event"
    #: Of a record that is no change of a row.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Reference:
    """A field of the envelope under the name ``name``. ``struct``: source or transaction, "" for the envelope's own."""

    struct: str
    field: str
    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    name: str
    text: str


Added = Reference | Constant


@dataclass(frozen=True, slots=True)
class Route:
    """The ``column`` whose value is the topic of a row; ``name``: of the transform, for messages."""

    name: str
    column: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A column of an outbox table that goes with the event: in a ``header``, beside the payload in an ``envelope``, or
    as the number of its ``partition``. ``optional``: it may be missing."""

    column: str
    place: str
    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Which columns of an outbox table are what of an event. ``name``: of the transform, for messages; ``timestamp``
    is "" where events have the time of their records; ``route``: whose value ``regex`` and ``replacement`` make a
    topic of; ``version``: of a schema that is not written; ``tombstones``: an empty payload is no value at all;
    ``expands``: a payload of JSON becomes a struct, and ``keeps_nulls``: with its fields that are null.
    """

    name: str
    id: str
    key: str
    payload: str
    timestamp: str
    route: str
    regex: str
    replacement: str
    placed: tuple[Placed, ...] = ()
    version: str = ""
    tombstones: bool = False
    expands: bool = False
    keeps_nulls: bool = False

    @property
    def in_envelope(self) -> bool:
        """Is there anything beside the payload?"""
        return any(each.place == "envelope" for each in self.placed)


@dataclass(frozen=True, slots=True)
class Form:
    """``op``: c, u, d, r, t, or "" of a tombstone and of a record that is no change. ``key_name``, ``row_name``,
    ``envelope_name``: of the schemas; ``key_fields``: what stands in the key behind its columns; ``fields``: behind a
    row's; ``headers``: those added, in order; ``own_headers``: names of those that the record had before; ``event``:
    where the value is one, whose topic is "" then, for each row has its own; ``route``: where a row's own topic is in a
    column, and ``topic`` that of rows in which the column says nothing.
    """

    topic: str
    op: str
    value: Value
    key_name: str
    row_name: str = ""
    envelope_name: str = ""
    key_fields: tuple[Constant, ...] = ()
    fields: tuple[Added, ...] = ()
    headers: tuple[Added, ...] = ()
    own_headers: tuple[str, ...] = ()
    event: Event | None = None
    route: Route | None = None

    @property
    def is_tombstone(self) -> bool:
        """As Connect understands it: without a value, whether or not there is a schema."""
        return self.value in (Value.EMPTY_ROW, Value.NOTHING)

    @property
    def written(self) -> Form:
        """Equal for kinds of records that are written alike: the operation only matters where it chooses the row."""
        image = "d" if self.op == "d" and (self.value is Value.ROW or self.route is not None) else ""
        return replace(self, op=image, own_headers=())


def change_form(topic: str, op: str = "c", schema_names: str = "none", *, moved: bool = False) -> Form:
    """The form of a record of the table that ``topic`` is for, as Debezium makes it. ``op`` "": the tombstone of a
    deletion; ``moved``: of an update that changes the key; ``schema_names``: schema.name.adjustment.mode."""
    own = {"c": (OLD_KEY,), "d": (NEW_KEY,), "": (NEW_KEY,)}.get(op, ()) if moved else ()
    key, row, envelope = (adjust(f"{topic}.{what}", schema_names) for what in ("Key", "Value", "Envelope"))
    return Form(topic, op, Value.ENVELOPE if op else Value.NOTHING, key, row, envelope, own_headers=own)
