"""Transforms that send records to another topic: Kafka's RegexRouter and Debezium's ByLogicalTableRouter.

https://kafka.apache.org/documentation/#org.apache.kafka.connect.transforms.RegexRouter
https://debezium.io/documentation/reference/stable/transformations/topic-routing.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.connect.field_names import adjust
from incsnap.transforms.form import Constant, Form, Value
from incsnap.transforms.replacement import replaced


@dataclass(frozen=True, slots=True)
class RegexRouter:
    """Names of schemas stay as they were."""

    regex: str
    replacement: str
    kind: Literal["RegexRouter"] = "RegexRouter"

    def apply(self, form: Form) -> Form:
        topic = replaced(self.regex, self.replacement, form.topic)
        return form if topic is None else replace(form, topic=topic)


@dataclass(frozen=True, slots=True)
class ByLogicalTableRouter:
    """``key_field``: key.field.name, "" without key.enforce.uniqueness; ``key_regex``: key.field.regex or "";
    ``schema_names``: schema.name.adjustment.mode of the transform itself.
    """

    regex: str
    replacement: str
    key_field: str = "__dbz__physicalTableIdentifier"
    key_regex: str = ""
    key_replacement: str = ""
    schema_names: str = "none"
    kind: Literal["ByLogicalTableRouter"] = "ByLogicalTableRouter"

    def apply(self, form: Form) -> Form:
        """An empty name of a topic is no topic: such a record stays as it is. Only an envelope's schema is renamed."""
        topic = replaced(self.regex, self.replacement, form.topic)
        if not topic:
            return form
        routed = replace(form, topic=topic, key_name=self._name(topic, "Key"))
        if self.key_field:
            routed = replace(routed, key_fields=(*routed.key_fields, Constant(self.key_field, self._table(form.topic))))
        if form.value is not Value.ENVELOPE:
            return routed
        return replace(routed, row_name=self._name(topic, "Value"), envelope_name=self._name(topic, "Envelope"))

    def _table(self, topic: str) -> str:
        """What tells the keys of one table from those of another."""
        name = replaced(self.key_regex, self.key_replacement, topic) if self.key_regex else None
        return topic if name is None else name

    def _name(self, topic: str, what: str) -> str:
        return adjust(f"{topic}.{what}", self.schema_names)
