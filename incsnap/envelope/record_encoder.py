"""The encoder of each kind of record of a table, as the transforms want these records: topic, key, value, headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from incsnap.envelope.format import EnvelopeFormat, KeyFormat, ValueFormat
from incsnap.envelope.outbox_events import EventFormat
from incsnap.envelope.row_conditions import CaseTopics, RowConditions
from incsnap.envelope.row_topics import RowTopics
from incsnap.transforms.chain import Chain, apply_chain, headers_of_tombstone
from incsnap.transforms.record_spec import Added, Edit, RecordSpec, ValueShape, change_spec


@dataclass(frozen=True, slots=True)
class Operation:
    """A kind of record of a table. The transforms answer alike for all records of one kind."""

    op: str  #: c, u, d, r or t; "" for the tombstone behind a deletion
    moved: bool = False  #: True: the record belongs to an update that changes the key


#: The kinds of records of changes: by operation as in `format.OPERATIONS`, then the tombstone; the moved ones last.
CHANGES = tuple(Operation(op, moved) for moved in (False, True) for op in ("c", "u", "d", ""))
READ, TRUNCATION = Operation("r"), Operation("t")


@dataclass(frozen=True, slots=True, eq=False)
class RecordKind:
    """The properties in which encoders of several tables must agree, so that one call can encode the records of all.

    What belongs to one table (topic, names, schemas, constants of its key) is in the table's templates and formats.
    """

    value: ValueShape  #: what the value is: an envelope, a row, nothing
    op: str  #: "d": the value shows the row before the change; "": the operation makes no difference
    fields: tuple[Added, ...]  #: fields added to a row
    headers: tuple[Added, ...]  #: headers added to a record
    edits: tuple[Edit, ...] = ()  #: edits of the value


#: Gives one object for equal properties. Look-ups use its id: hashing all added fields takes some µs.
record_kind = lru_cache(maxsize=256)(RecordKind)


@dataclass(frozen=True, slots=True, eq=False)
class RecordEncoder:
    """The encoder of records of one kind. Kinds with equal answers of the transforms share one object."""

    spec: RecordSpec  #: what the transforms answered
    kind: RecordKind  #: what encoders of other tables may share
    key: KeyFormat | None  #: None for a table without a key
    value: ValueFormat | None = None  #: None: the records have no value
    envelope: EnvelopeFormat | None = None  #: the same object as `value` if that is the whole envelope
    #: bytes in place of a missing value: a converter's null with schema, or None for no bytes
    null_value: bytes | None = None
    event: EventFormat | None = None  #: the same object as `value` if the rows are outbox events
    #: None: all records go to the topic of `spec`; else the values of each row decide
    topics: RowTopics | CaseTopics | None = None
    kept: RowConditions | None = None  #: conditions on columns for records that are sent; None: all are sent

    @property
    def has_bytes(self) -> bool:
        """Return True if the record has bytes as its value. Without bytes the record is a tombstone to Kafka."""
        return self.value is not None or self.null_value is not None


@lru_cache(maxsize=4096)
def specs_of(
    topic: str, chain: Chain, schema_names: str, headers: tuple[Added, ...] = ()
) -> Mapping[Operation, RecordSpec | None]:
    """Return the spec of each kind of record of a table; None for a kind that is dropped.

    `topic` is the table's topic before transforms. `headers` are those of all records before transforms. Raise
    ConfigError if a transform cannot be asked about a kind.
    """
    specs_by_operation = {}
    for kind in (READ, *CHANGES, TRUNCATION):
        spec = change_spec(topic, kind.op, schema_names, moved=kind.moved, headers=headers)
        if not kind.op:
            deletion = change_spec(topic, "d", schema_names, moved=kind.moved, headers=headers)
            spec = replace(spec, headers=(*headers, *headers_of_tombstone(chain, deletion)))
        specs_by_operation[kind] = apply_chain(chain, spec)
    return specs_by_operation


def topics(topic: str, chain: Chain, schema_names: str, headers: tuple[Added, ...] = ()) -> tuple[str, ...]:
    """Return the topics of all records of a table, without repetition; empty if all records are dropped.

    The topics of outbox events are in their rows and do not count. The partitions of the first topic choose the buckets
    for all records. The first topic is the one of rows read by SELECT, unless these are dropped.
    """
    specs_by_operation = specs_of(topic, chain, schema_names, headers).values()
    return tuple(dict.fromkeys(spec.topic for spec in specs_by_operation if spec is not None and spec.event is None))
