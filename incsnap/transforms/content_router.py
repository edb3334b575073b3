"""The transform io.debezium.transforms.ContentBasedRouter: an expression chooses the topic of a record.

https://debezium.io/documentation/reference/stable/transformations/content-based-routing.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.conditions import Choice, Truth, asks_for_columns, conditions_of
from incsnap.transforms.filter import condition_on
from incsnap.transforms.record_spec import CaseRoute, RecordSpec
from signals.regex import java_pattern


@dataclass(frozen=True, slots=True)
class ContentBasedRouter:
    """A transform that sends records to topics that conditions on the operation and on columns choose."""

    name: str  #: of the transform, for messages
    choice: Choice | str | None  #: the topic; None: the topic stays
    topic_regex: str = ""  #: topic.regex: other topics are left alone; "" for all topics
    keeps_empty: bool = True  #: null.handling.mode=keep: tombstones keep their topic
    #: name of the class where settings are stored as JSON
    kind: Literal["ContentBasedRouter"] = "ContentBasedRouter"

    @property
    def asks_for_columns(self) -> bool:
        """Return True if a column decides about the topic."""
        return any(map(asks_for_columns, conditions_of(self.choice)))

    def apply(self, spec: RecordSpec) -> RecordSpec | None:
        """Return the spec with the topic; None if tombstones are dropped.

        If columns decide, the spec has the route. Raise ConfigError for records that have none of these values.
        """
        if self.topic_regex and java_pattern(self.topic_regex).fullmatch(spec.topic) is None:
            return spec
        if spec.is_tombstone:
            return spec if self.keeps_empty else None
        chosen = self._of(self.choice, spec)
        if isinstance(chosen, Choice):
            return replace(spec, route=CaseRoute(self.name, chosen))
        return spec if not chosen else replace(spec, topic=chosen)

    def _of(self, choice: Choice | str | None, spec: RecordSpec) -> Choice | str | None:
        """Return what is chosen for records of this spec: a topic, or a choice by columns."""
        if not isinstance(choice, Choice):
            return choice
        condition = condition_on(f"{self.name}.topic.expression", choice.condition, spec)
        if isinstance(condition, Truth):
            return self._of(choice.chosen if condition.holds else choice.otherwise, spec)
        return Choice(condition, self._of(choice.chosen, spec), self._of(choice.otherwise, spec))
