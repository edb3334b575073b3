"""io.debezium.transforms.ExtractNewRecordState: the row in the place of the envelope.

https://debezium.io/documentation/reference/stable/transformations/event-flattening.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.form import Added, Constant, Form, Reference, Value

#: delete.tombstone.handling.mode
MODES = ("tombstone", "drop", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
_DELETED = "__deleted"


@dataclass(frozen=True, slots=True)
class ExtractNewRecordState:
    """``mode`` is one of ``MODES``; ``fields`` and ``headers`` are add.fields and add.headers under their new names."""

    mode: str = "tombstone"
    fields: tuple[Reference, ...] = ()
    headers: tuple[Reference, ...] = ()
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
        if form.op == "d":
            return self._deletion(form)
        return self._row(form, "false")

    def _tombstone(self, form: Form) -> Form | None:
        """It has nothing of the envelope, but that a deletion stands before it is known."""
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
