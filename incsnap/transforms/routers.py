"""Transforms that send records to another topic: Kafka's RegexRouter and Debezium's ByLogicalTableRouter.

https://kafka.apache.org/documentation/#org.apache.kafka.connect.transforms.RegexRouter
https://debezium.io/documentation/reference/stable/transformations/topic-routing.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.connect.field_names import adjust
from incsnap.transforms.record_spec import Constant, RecordSpec, ValueShape
from incsnap.transforms.replacement import replaced


@dataclass(frozen=True, slots=True)
class RegexRouter:
    """A transform that changes the topic by a regex. The names of schemas stay."""

    regex: str  #: Java regex that must match the whole topic
    replacement: str  #: as for Java's Matcher.replaceFirst
    kind: Literal["RegexRouter"] = "RegexRouter"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec with the new topic; the same spec if the regex does not match."""
        topic = replaced(self.regex, self.replacement, spec.topic)
        return spec if topic is None else replace(spec, topic=topic)


@dataclass(frozen=True, slots=True)
class ByLogicalTableRouter:
    """A transform that sends the records of several tables to one topic. It also renames their schemas."""

    regex: str  #: topic.regex, which must match the whole topic
    replacement: str  #: topic.replacement
    #: key.field.name, the field that tells the tables' keys apart; "" without key.enforce.uniqueness
    key_field: str = "__dbz__physicalTableIdentifier"
    key_regex: str = ""  #: key.field.regex; "": the field has the table's topic
    key_replacement: str = ""  #: key.field.replacement
    schema_names: str = "none"  #: schema.name.adjustment.mode of this transform
    #: name of the class where settings are stored as JSON
    kind: Literal["ByLogicalTableRouter"] = "ByLogicalTableRouter"

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec with the new topic and the new names of schemas.

        The spec stays as it is if the regex does not match or makes an empty topic. Names of value schemas change for
        envelopes only.
        """
        topic = replaced(self.regex, self.replacement, spec.topic)
        if not topic:
            return spec
        routed = replace(spec, topic=topic, key_name=self._name(topic, "Key"))
        if self.key_field:
            routed = replace(routed, key_fields=(*routed.key_fields, Constant(self.key_field, self._table(spec.topic))))
        if spec.value is not ValueShape.ENVELOPE:
            return routed
        return replace(routed, row_name=self._name(topic, "Value"), envelope_name=self._name(topic, "Envelope"))

    def _table(self, topic: str) -> str:
        """Return the text that tells the keys of one table from those of another."""
        name = replaced(self.key_regex, self.key_replacement, topic) if self.key_regex else None
        return topic if name is None else name

    def _name(self, topic: str, what: str) -> str:
        return adjust(f"{topic}.{what}", self.schema_names)
