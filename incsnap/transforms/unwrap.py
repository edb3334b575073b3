"""The transform io.debezium.transforms.ExtractNewRecordState: the row in place of the envelope.

https://debezium.io/documentation/reference/stable/transformations/event-flattening.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.record_spec import Added, Constant, EnvelopeField, RecordSpec, Route, ValueShape

#: Values of delete.tombstone.handling.mode.
MODES = ("tombstone", "drop", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
_DELETED = "__deleted"


@dataclass(frozen=True, slots=True)
class ExtractNewRecordState:
    """A transform that takes the row out of the envelope."""

    mode: str = "tombstone"  #: delete.tombstone.handling.mode, one of `MODES`
    fields: tuple[EnvelopeField, ...] = ()  #: add.fields, under their new names
    headers: tuple[EnvelopeField, ...] = ()  #: add.headers, under their new names
    route: Route | None = None  #: route.by.field
    #: name of the class where settings are stored as JSON
    kind: Literal["ExtractNewRecordState"] = "ExtractNewRecordState"

    def apply(self, spec: RecordSpec) -> RecordSpec | None:
        """Return the spec of the records with a row in place of the envelope; None if they are dropped.

        A truncation is always dropped, because it has no row. Records without an envelope stay as they are.
        """
        if spec.is_tombstone:
            return self._tombstone(spec)
        if spec.value is not ValueShape.ENVELOPE:
            return spec
        spec = replace(spec, headers=(*spec.headers, *self.headers))
        if spec.op == "t":
            return None
        changed = self._deletion(spec) if spec.op == "d" else self._row(spec, "false")
        return changed if changed is None or self.route is None else replace(changed, route=self.route)

    def _tombstone(self, spec: RecordSpec) -> RecordSpec | None:
        """Return the spec of a tombstone, None if it is dropped.

        A tombstone has no envelope, so no fields and no route. Of the added headers it gets only `op`, which is "d".
        """
        if self.mode != "rewrite-with-tombstone":
            return None
        constants = tuple(Constant(header.name, "d") for header in self.headers if header.field == "op")
        return replace(spec, headers=(*spec.headers, *constants))

    def _deletion(self, spec: RecordSpec) -> RecordSpec | None:
        if self.mode == "drop":
            return None
        if self.mode == "tombstone":
            return replace(spec, value=ValueShape.EMPTY_ROW)
        if self.mode == "delete-to-tombstone":
            return replace(spec, value=ValueShape.NOTHING)
        return self._row(spec, "true")

    def _row(self, spec: RecordSpec, deleted: str) -> RecordSpec:
        marks: tuple[Added, ...] = (Constant(_DELETED, deleted),) if self.mode.startswith("rewrite") else ()
        return replace(spec, value=ValueShape.ROW, fields=(*marks, *self.fields), edits=())
