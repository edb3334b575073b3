"""The ``transforms`` of the settings, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.errors import ConfigError
from incsnap.transforms.filter import Drop, Filter
from incsnap.transforms.form import Added, Form
from incsnap.transforms.outbox import EventRouter
from incsnap.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from incsnap.transforms.routers import ByLogicalTableRouter, RegexRouter
from incsnap.transforms.unwrap import ExtractNewRecordState

Transform = ExtractNewRecordState | RegexRouter | ByLogicalTableRouter | Drop | Filter | EventRouter
Predicate = TopicNameMatches | RecordIsTombstone | HasHeaderKey


@dataclass(frozen=True, slots=True)
class Step:
    """A transform, and when it is applied: where the predicate holds, or (``negate``) where it does not."""

    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False

    def asked(self, form: Form) -> bool:
        return self.predicate is None or self.predicate.holds(form) != self.negate

    def apply(self, form: Form) -> Form | None:
        return self.transform.apply(form) if self.asked(form) else form


Chain = tuple[Step, ...]


def headers_of_tombstone(chain: Chain, deletion: Form) -> tuple[Added, ...]:
    """What a tombstone gets from the deletion before it: Debezium gives both one list of headers, to which a transform
    adds while it handles the deletion, unless an earlier one has made a new record of that."""
    for step in chain:
        if not step.asked(deletion):
            continue
        if isinstance(step.transform, ExtractNewRecordState):
            return step.transform.headers
        if step.transform.apply(deletion) != deletion:
            return ()
    return ()


def passed(chain: Chain, form: Form) -> Form | None:
    """``form`` behind all of ``chain``, None where such records are dropped. Raises ``ConfigError`` where a transform
    cannot be asked about such records."""
    passing: Form | None = form
    for step in chain:
        if passing is None:
            return None
        if own := passing.event or passing.route:
            what = "its route.topic.replacement can name any topic" if passing.event else "or take route.by.field out"
            raise ConfigError(
                f"transforms: another one stands behind {own.name}, and would be asked about records whose topics are"
                " in their rows",
                f"Let {own.name} be the last of transforms; {what}.",
            )
        passing = step.apply(passing)
    return passing


def refusal_of_updates(chain: Chain, update: Form) -> str:
    """Gives table.op.invalid.behavior of the router that drops ``update``, "" where none does."""
    passing: Form | None = update
    for step in chain:
        if passing is None:
            return ""
        if isinstance(step.transform, EventRouter) and step.asked(passing) and step.apply(passing) is None:
            return step.transform.updates
        passing = step.apply(passing)
    return ""
