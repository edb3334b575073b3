"""Connect's predicates, org.apache.kafka.connect.transforms.predicates.*, which say whether a transform is applied.

https://kafka.apache.org/documentation/#connect_predicates
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from incsnap.transforms.form import Form
from signals.regex import java_pattern


@dataclass(frozen=True, slots=True)
class TopicNameMatches:
    """``pattern`` is a Java regex that all of the name must match."""

    pattern: str
    kind: Literal["TopicNameMatches"] = "TopicNameMatches"

    def holds(self, form: Form) -> bool:
        return java_pattern(self.pattern).fullmatch(form.topic) is not None


@dataclass(frozen=True, slots=True)
class RecordIsTombstone:
    kind: Literal["RecordIsTombstone"] = "RecordIsTombstone"

    def holds(self, form: Form) -> bool:
        return form.is_tombstone


@dataclass(frozen=True, slots=True)
class HasHeaderKey:
    name: str
    kind: Literal["HasHeaderKey"] = "HasHeaderKey"

    def holds(self, form: Form) -> bool:
        return self.name in form.own_headers or any(header.name == self.name for header in form.headers)
