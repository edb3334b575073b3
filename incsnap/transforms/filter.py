"""Kafka's Filter, which drops all that it is asked about, and io.debezium.transforms.Filter, as far as its condition
asks for the operation alone.

The condition of Debezium is a script. What of the scripts' language is understood here (``conditions``) has the meaning
that Groovy and JavaScript give it.
https://debezium.io/documentation/reference/stable/transformations/filtering.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from incsnap.errors import ConfigError
from incsnap.transforms.form import Form, Value
from signals.regex import java_pattern


@dataclass(frozen=True, slots=True)
class Drop:
    """Drops what its predicate takes, as org.apache.kafka.connect.transforms.Filter does."""

    kind: Literal["Drop"] = "Drop"

    def apply(self, form: Form) -> Form | None:
        return None


@dataclass(frozen=True, slots=True)
class Filter:
    """``operations``: those of which the condition is true. ``topic_regex``: topic.regex, "" for all topics;
    ``keeps_empty``: null.handling.mode=keep. ``name``: of the transform, for messages.
    """

    name: str
    operations: tuple[str, ...]
    topic_regex: str = ""
    keeps_empty: bool = True
    kind: Literal["Filter"] = "Filter"

    def apply(self, form: Form) -> Form | None:
        if self.topic_regex and java_pattern(self.topic_regex).fullmatch(form.topic) is None:
            return form
        if form.is_tombstone:
            return form if self.keeps_empty else None
        if form.value is not Value.ENVELOPE:
            raise ConfigError(
                f"transforms.{self.name}.condition asks for value.op, which records of topic {form.topic} do not have",
                f"Set transforms.{self.name}.topic.regex to the topics of tables, and let {self.name} stand before a"
                " transform that unwraps them.",
            )
        return form if form.op in self.operations else None
