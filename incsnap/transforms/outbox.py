"""io.debezium.transforms.outbox.EventRouter: rows of an outbox table become the events that they hold.

Which topic an event goes to is in the row, so it is found when the columns are at hand (``envelope.outbox_events``).
https://debezium.io/documentation/reference/stable/transformations/outbox-event-router.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.form import Event, Form, Value


@dataclass(frozen=True, slots=True)
class EventRouter:
    """``updates``: table.op.invalid.behavior."""

    event: Event
    updates: str = "warn"
    kind: Literal["EventRouter"] = "EventRouter"

    def apply(self, form: Form) -> Form | None:
        """Rows that are inserted or read are events; all else of the table is dropped."""
        if form.is_tombstone:
            return None
        if form.value is not Value.ENVELOPE:
            return form
        if form.op not in ("c", "r"):
            return None
        return replace(form, topic="", value=Value.EVENT, event=self.event)
