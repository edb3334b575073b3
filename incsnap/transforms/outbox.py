"""The transform io.debezium.transforms.outbox.EventRouter: rows of an outbox table become the events that they hold.

The row says which topic its event goes to, so the topic is found later, from the columns (`envelope.outbox_events`).
https://debezium.io/documentation/reference/stable/transformations/outbox-event-router.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.record_spec import OutboxEvent, RecordSpec, ValueShape


@dataclass(frozen=True, slots=True)
class EventRouter:
    """A transform that makes outbox events of inserted rows and of rows that a snapshot reads."""

    event: OutboxEvent  #: the columns of the outbox table
    updates: str = "warn"  #: table.op.invalid.behavior, for updates of the table
    kind: Literal["EventRouter"] = "EventRouter"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec | None:
        """Return the spec of events for inserted and read rows. Return None for all other records of the table: they
        are dropped.

        Records that have no envelope stay as they are.
        """
        if spec.is_tombstone:
            return None
        if spec.value is not ValueShape.ENVELOPE:
            return spec
        if spec.op not in ("c", "r"):
            return None
        return replace(spec, topic="", value=ValueShape.EVENT, event=self.event)
