"""The transforms that drop records: Kafka's Filter, and io.debezium.transforms.Filter for conditions on the operation.

Kafka's Filter drops each record that its predicate takes. The condition of Debezium's Filter is a script, of which only
conditions on the operation are supported (`conditions`). They have the meaning that Groovy and JavaScript give them.
https://debezium.io/documentation/reference/stable/transformations/filtering.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from incsnap.errors import ConfigError
from incsnap.transforms.record_spec import RecordSpec, ValueShape
from signals.regex import java_pattern


@dataclass(frozen=True, slots=True)
class Drop:
    """A transform that drops all its records, as org.apache.kafka.connect.transforms.Filter does."""

    kind: Literal["Drop"] = "Drop"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec | None:
        """Return None: the records are dropped."""
        return None


@dataclass(frozen=True, slots=True)
class Filter:
    """A transform that drops changes by their operation, as io.debezium.transforms.Filter does."""

    name: str  #: of the transform, for messages
    operations: tuple[str, ...]  #: letters of the operations for which the condition is true; these records stay
    topic_regex: str = ""  #: topic.regex: other topics are not filtered; "" for all topics
    keeps_empty: bool = True  #: null.handling.mode=keep: tombstones stay
    kind: Literal["Filter"] = "Filter"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec | None:
        """Return the spec if its records stay, None if they are dropped.

        Raise ConfigError for records without an operation, such as those that an earlier transform has unwrapped.
        """
        if self.topic_regex and java_pattern(self.topic_regex).fullmatch(spec.topic) is None:
            return spec
        if spec.is_tombstone:
            return spec if self.keeps_empty else None
        if spec.value is not ValueShape.ENVELOPE:
            raise ConfigError(
                f"transforms.{self.name}.condition asks for value.op, which records of topic {spec.topic} do not have",
                f"Set transforms.{self.name}.topic.regex to the topics of tables, and let {self.name} stand before a"
                " transform that unwraps them.",
            )
        return spec if spec.op in self.operations else None
