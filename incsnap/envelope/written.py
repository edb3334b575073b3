"""How records of each kind of a table are written, once the transforms were asked: their topic, key, value, headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from incsnap.envelope.format import EnvelopeFormat, KeyFormat, ValueFormat
from incsnap.envelope.outbox_events import EventFormat
from incsnap.envelope.row_topics import RowTopics
from incsnap.transforms.chain import Chain, headers_of_tombstone, passed
from incsnap.transforms.form import Form, change_form


@dataclass(frozen=True, slots=True)
class Kind:
    """``op``: c, u, d, r, t, or "" of the tombstone behind a deletion; ``moved``: of an update of the key."""

    op: str
    moved: bool = False


#: Of changes of rows, in the order of the numbers that stand for operations there, a tombstone last.
CHANGES = tuple(Kind(op, moved) for moved in (False, True) for op in ("c", "u", "d", ""))
READ, TRUNCATION = Kind("r"), Kind("t")


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """``key`` is None where the table has none. ``value`` is None where there is none, and ``nothing`` what is written
    in its place: no bytes (None), or those that a converter makes of a null with a schema. ``envelope`` is ``value``
    where that is the whole envelope, and ``event`` where it is what a row of an outbox table holds. ``topics``: where
    a row itself says which it goes to.
    """

    form: Form
    key: KeyFormat | None
    value: ValueFormat | None = None
    envelope: EnvelopeFormat | None = None
    nothing: bytes | None = None
    event: EventFormat | None = None
    topics: RowTopics | None = None

    @property
    def has_bytes(self) -> bool:
        """Else the record is a tombstone to Kafka."""
        return self.value is not None or self.nothing is not None


@lru_cache(maxsize=4096)
def forms(topic: str, chain: Chain, schema_names: str) -> Mapping[Kind, Form | None]:
    """The form of each kind of record of the table that ``topic`` is for before the transforms; None: it is dropped.

    Raises ``ConfigError`` where a transform cannot be asked.
    """
    forms_by_kind = {}
    for kind in (READ, *CHANGES, TRUNCATION):
        form = change_form(topic, kind.op, schema_names, moved=kind.moved)
        if not kind.op:
            deletion = change_form(topic, "d", schema_names, moved=kind.moved)
            form = replace(form, headers=headers_of_tombstone(chain, deletion))
        forms_by_kind[kind] = passed(chain, form)
    return forms_by_kind


def topics(topic: str, chain: Chain, schema_names: str) -> tuple[str, ...]:
    """All that records of the table go to, none where all are dropped; but for events, whose topics are in their rows.
    By the first of them buckets are chosen, whatever goes to the others; it is the one of rows read by SELECT where
    these are not dropped."""
    forms_by_kind = forms(topic, chain, schema_names).values()
    return tuple(dict.fromkeys(form.topic for form in forms_by_kind if form is not None and form.event is None))
