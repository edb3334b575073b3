"""The transforms of headers: InsertHeader and DropHeaders of Kafka Connect.

https://kafka.apache.org/documentation/#connect_included_transformation
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.record_spec import Constant, RecordSpec

#: A literal that Kafka Connect reads as a number: the group is the number, and what follows is lost.
NUMBER = re.compile(r"([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)(?:[:,].*)?", re.DOTALL)
#: Other literals that are no texts, besides lists and maps.
_TYPED = re.compile(r"true|false|\d{4}-\d{2}-\d{2}.*", re.DOTALL)


def is_text(shown: str) -> bool:
    """Return True if the header whose text is `shown` is a text to Kafka Connect, not a number or another value."""
    return not (NUMBER.fullmatch(shown) or shown[:1] in ("[", "{") or _TYPED.fullmatch(shown))


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
