"""The chain of `transforms` in the settings: Kafka Connect's single message transforms, applied one after the other.

The chain is asked once for each table and kind of record (`spec`), not record by record.
"""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.errors import ConfigError
from incsnap.transforms.changed_state import ExtractChangedRecordState
from incsnap.transforms.content_router import ContentBasedRouter
from incsnap.transforms.edits import EditFields, HeaderToValue, InsertFields, SetSchemaMetadata, ValueToKey
from incsnap.transforms.filter import Drop, Filter
from incsnap.transforms.headers import DropHeaders, InsertHeader
from incsnap.transforms.outbox import EventRouter
from incsnap.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from incsnap.transforms.read_to_insert import ReadToInsertEvent
from incsnap.transforms.record_spec import Added, CaseRoute, RecordSpec, Route
from incsnap.transforms.routers import ByLogicalTableRouter, RegexRouter
from incsnap.transforms.time_zones import TimezoneConverter
from incsnap.transforms.unwrap import ExtractNewRecordState

Transform = (
    ExtractNewRecordState
    | ExtractChangedRecordState
    | TimezoneConverter
    | ReadToInsertEvent
    | RegexRouter
    | ByLogicalTableRouter
    | Drop
    | Filter
    | EventRouter
    | ContentBasedRouter
    | EditFields
    | InsertFields
    | ValueToKey
    | SetSchemaMetadata
    | HeaderToValue
    | InsertHeader
    | DropHeaders
)
Predicate = TopicNameMatches | RecordIsTombstone | HasHeaderKey


@dataclass(frozen=True, slots=True)
class Step:
    """A transform with its predicate."""

    transform: Transform  #: the transform, which is asked for the spec of records
    predicate: Predicate | None = None  #: the transform applies to records for which it holds; None: to all records
    negate: bool = False  #: the transform applies where the predicate does not hold

    def applies_to(self, spec: RecordSpec) -> bool:
        """Return True if the transform applies to records of this spec."""
        return self.predicate is None or self.predicate.holds(spec) != self.negate

    def apply(self, spec: RecordSpec) -> RecordSpec | None:
        """Return the spec of the records behind this step; None if they are dropped."""
        return self.transform.apply(spec) if self.applies_to(spec) else spec


Chain = tuple[Step, ...]


def asks_for_columns(chain: Chain) -> bool:
    """Return True if the columns of rows decide which records stay or where they go."""
    return any(
        isinstance(step.transform, Filter | ContentBasedRouter) and step.transform.asks_for_columns for step in chain
    )


def asks_for_topics(chain: Chain) -> bool:
    """Return True if the topic decides which records a transform applies to."""
    return any(
        isinstance(step.predicate, TopicNameMatches)
        or (isinstance(step.transform, Filter | ContentBasedRouter) and step.transform.topic_regex)
        for step in chain
    )


def headers_of_tombstone(chain: Chain, deletion: RecordSpec) -> tuple[Added, ...]:
    """Return the headers that a tombstone gets because its deletion passed through the chain. `deletion` is its spec.

    Debezium gives a deletion and its tombstone one list of headers. ExtractChangedRecordState and ExtractNewRecordState
    add headers to that list while they handle the deletion, so the tombstone has them too. If an earlier transform
    makes a new record of the deletion, the lists are separate, and headers that are added later are missing.
    """
    shared: tuple[Added, ...] = ()
    for step in chain:
        if not step.applies_to(deletion):
            continue
        if isinstance(step.transform, ExtractNewRecordState):
            return (*shared, *step.transform.headers)
        passed = step.transform.apply(deletion)
        if isinstance(step.transform, ExtractChangedRecordState) and passed is not None:
            shared, deletion = (*shared, *step.transform.headers), passed
        elif passed != deletion:
            return shared
    return shared


def apply_chain(chain: Chain, spec: RecordSpec) -> RecordSpec | None:
    """Return the spec of the records behind the whole chain; None if the records are dropped.

    Raise ConfigError if a transform stands behind one that takes topics from rows: it cannot be asked once for all
    records.
    """
    passing: RecordSpec | None = spec
    for step in chain:
        if passing is None:
            return None
        own = passing.event or passing.route
        if isinstance(own, CaseRoute) and not isinstance(step.predicate, TopicNameMatches):
            behind = step.apply(passing)
            if behind is None or behind.topic == passing.topic:
                passing = behind
                continue
        if own:
            what = "or remove its route.by.field"
            if not isinstance(own, Route):
                setting = "route.topic.replacement" if passing.event else "topic.expression"
                what = f"its {setting} can name any topic"
            raise ConfigError(
                f"transforms: a transform stands behind {own.name}, but the rows name the topics of its records, so the"
                " later transform cannot be applied once for the whole table",
                f"Make {own.name} the last entry of transforms; {what}.",
            )
        passing = step.apply(passing)
    return passing


def refusal_of_updates(chain: Chain, update: RecordSpec) -> str:
    """Return table.op.invalid.behavior of the outbox router that drops `update`: warn, error or fatal.

    Return "" if no outbox router drops updates.
    """
    passing: RecordSpec | None = update
    for step in chain:
        if passing is None:
            return ""
        if isinstance(step.transform, EventRouter) and step.applies_to(passing) and step.apply(passing) is None:
            return step.transform.updates
        passing = step.apply(passing)
    return ""
