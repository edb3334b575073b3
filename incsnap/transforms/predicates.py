"""Kafka Connect's predicates (org.apache.kafka.connect.transforms.predicates.*): whether a transform applies to a
record.

https://kafka.apache.org/documentation/#connect_predicates
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from incsnap.transforms.record_spec import RecordSpec
from signals.regex import java_pattern


@dataclass(frozen=True, slots=True)
class TopicNameMatches:
    """A predicate that holds for topics whose whole name matches a regex."""

    pattern: str  #: Java regex that must match the whole name of the topic
    kind: Literal["TopicNameMatches"] = "TopicNameMatches"  #: name of the class where settings are stored as JSON

    def holds(self, spec: RecordSpec) -> bool:
        """Return True if the pattern matches the whole name of the topic."""
        return java_pattern(self.pattern).fullmatch(spec.topic) is not None


@dataclass(frozen=True, slots=True)
class RecordIsTombstone:
    """A predicate that holds for records without a value."""

    kind: Literal["RecordIsTombstone"] = "RecordIsTombstone"  #: name of the class where settings are stored as JSON

    def holds(self, spec: RecordSpec) -> bool:
        """Return True if the records have no value."""
        return spec.is_tombstone


@dataclass(frozen=True, slots=True)
class HasHeaderKey:
    """A predicate that holds for records with a certain header."""

    name: str  #: of the header
    kind: Literal["HasHeaderKey"] = "HasHeaderKey"  #: name of the class where settings are stored as JSON

    def holds(self, spec: RecordSpec) -> bool:
        """Return True if the records have the header, from the start or from an earlier transform."""
        return self.name in spec.own_headers or any(header.name == self.name for header in spec.headers)
