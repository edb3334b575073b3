"""The transforms of headers: InsertHeader and DropHeaders of Kafka Connect.

https://kafka.apache.org/documentation/#connect_included_transformation
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.record_spec import Constant, RecordSpec


@dataclass(frozen=True, slots=True)
class InsertHeader:
    """A transform that adds a header with the same text to each record."""

    header: Constant  #: the header and its text
    kind: Literal["InsertHeader"] = "InsertHeader"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec with the header."""
        return replace(spec, headers=(*spec.headers, self.header))


@dataclass(frozen=True, slots=True)
class DropHeaders:
    """A transform that removes headers by their names."""

    names: tuple[str, ...]  #: names of the headers
    kind: Literal["DropHeaders"] = "DropHeaders"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec without these headers."""
        return replace(spec, headers=tuple(each for each in spec.headers if each.name not in self.names))
