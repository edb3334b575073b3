"""io.debezium.transforms.ExtractNewRecordState: the row in the place of the envelope.

https://debezium.io/documentation/reference/stable/transformations/event-flattening.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.form import Added, Constant, Form, Reference, Route, Value

#: delete.tombstone.handling.mode
MODES = ("tombstone", "drop", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
_DELETED = "__deleted"


@dataclass(frozen=True, slots=True)
class ExtractNewRecordState:
    """``mode`` is one of ``MODES``; ``fields`` and ``headers`` are add.fields and add.headers under their new names;
    ``route`` is route.by.field."""

    mode: str = "tombstone"
    fields: tuple[Reference, ...] = ()
    headers: tuple[Reference, ...] = ()
    route: Route | None = None
    kind: Literal["ExtractNewRecordState"] = "ExtractNewRecordState"

    def apply(self, form: Form) -> Form | None:
        """A truncation is dropped: it has no row."""
        if form.is_tombstone:
            return self._tombstone(form)
        if form.value is not Value.ENVELOPE:
            return form
        form = replace(form, headers=(*form.headers, *self.headers))
        if form.op == "t":
            return None
        changed = self._deletion(form) if form.op == "d" else self._row(form, "false")
        return changed if changed is None or self.route is None else replace(changed, route=self.route)

    def _tombstone(self, form: Form) -> Form | None:
        """It has nothing of the envelope, so no route either, but that a deletion stands before it is known."""
        if self.mode != "rewrite-with-tombstone":
            return None
        constants = tuple(Constant(header.name, "d") for header in self.headers if header.field == "op")
        return replace(form, headers=(*form.headers, *constants))

    def _deletion(self, form: Form) -> Form | None:
        if self.mode == "drop":
            return None
        if self.mode == "tombstone":
            return replace(form, value=Value.EMPTY_ROW)
        if self.mode == "delete-to-tombstone":
            return replace(form, value=Value.NOTHING)
        return self._row(form, "true")

    def _row(self, form: Form, deleted: str) -> Form:
        marks: tuple[Added, ...] = (Constant(_DELETED, deleted),) if self.mode.startswith("rewrite") else ()
        return replace(form, value=Value.ROW, fields=(*marks, *self.fields))
