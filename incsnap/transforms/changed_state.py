"""The transform io.debezium.transforms.ExtractChangedRecordState: headers that name the columns an update has changed.

https://debezium.io/documentation/reference/stable/transformations/event-changes.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.record_spec import ChangedColumns, RecordSpec, ValueShape


@dataclass(frozen=True, slots=True)
class ExtractChangedRecordState:
    """A transform that adds headers with the names of the columns which an update has changed, or has left alone."""

    changed: str = ""  #: header.changed.name; "": no such header
    unchanged: str = ""  #: header.unchanged.name; "": no such header
    #: name of the class where settings are stored as JSON
    kind: Literal["ExtractChangedRecordState"] = "ExtractChangedRecordState"

    @property
    def headers(self) -> tuple[ChangedColumns, ...]:
        """Return the headers, in the order of Debezium."""
        named = ((self.changed, True), (self.unchanged, False))
        return tuple(ChangedColumns(name, "[]", changed) for name, changed in named if name)

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec with the headers. Records without an envelope stay as they are."""
        if spec.value is not ValueShape.ENVELOPE:
            return spec
        return replace(spec, headers=(*spec.headers, *self.headers))
