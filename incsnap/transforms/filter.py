"""The transforms that drop records: Kafka's Filter, and io.debezium.transforms.Filter.

Kafka's Filter drops each record that its predicate takes. The condition of Debezium's Filter is a script, of which
conditions on the operation and on columns are supported (`conditions`). They have the meaning that Groovy and
JavaScript give them.
https://debezium.io/documentation/reference/stable/transformations/filtering.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.errors import ConfigError
from incsnap.transforms.conditions import (
    Condition,
    NotUnderstoodError,
    Truth,
    Value,
    asks_for_columns,
    of_operation,
    paths_of,
)
from incsnap.transforms.record_spec import (
    CastFields,
    Constant,
    ConvertTimestamp,
    Edit,
    EnvelopeField,
    ExtractField,
    HoistField,
    Inserted,
    KeepFields,
    MaskFields,
    RecordSpec,
    ValueShape,
)
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
    """A transform that drops changes, as io.debezium.transforms.Filter does."""

    name: str  #: of the transform, for messages
    condition: Condition  #: records for which it holds stay
    topic_regex: str = ""  #: topic.regex: other topics are not filtered; "" for all topics
    keeps_empty: bool = True  #: null.handling.mode=keep: tombstones stay
    kind: Literal["Filter"] = "Filter"  #: name of the class where settings are stored as JSON

    @property
    def asks_for_columns(self) -> bool:
        """Return True if a column decides about records."""
        return asks_for_columns(self.condition)

    def apply(self, spec: RecordSpec) -> RecordSpec | None:
        """Return the spec if its records stay, None if they are dropped.

        If columns decide, the spec has the condition. Raise ConfigError for records that have none of these values.
        """
        if self.topic_regex and java_pattern(self.topic_regex).fullmatch(spec.topic) is None:
            return spec
        if spec.is_tombstone:
            return spec if self.keeps_empty else None
        condition = condition_on(f"{self.name}.condition", self.condition, spec)
        if isinstance(condition, Truth):
            return spec if condition.holds else None
        return replace(spec, conditions=(*spec.conditions, condition))


def _known(spec: RecordSpec) -> dict[str, Value]:
    """Return the values of fields that transforms have added to rows of this spec, as far as all rows share them."""
    known: dict[str, Value] = {}
    for field in (*spec.fields, *spec.edits):
        if isinstance(field, Constant | Inserted):
            known[field.name] = field.text
        elif isinstance(field, EnvelopeField) and (field.struct, field.field) == ("", "op"):
            known[field.name] = spec.op
    return known


def _refuse_edited(setting: str, condition: Condition, spec: RecordSpec) -> None:
    """Raise ConfigError if the condition asks for a column that an earlier transform has edited.

    The columns are compared as the table has them, before all edits.
    """
    for name in (path[-1] for path in paths_of(condition)):
        if editor := next((class_ for edit in spec.edits if (class_ := _editor(edit, name))), ""):
            transform = setting.partition(".")[0]
            raise ConfigError(
                f"transforms.{setting}: the script asks for {name} behind a {editor} of {name}, but"
                " conditions are compared with the columns of the table",
                f"Let transforms.{transform} stand before the {editor}, with a condition on the column of the table.",
            )


def _editor(edit: Edit, name: str) -> str:
    """Return the class of the transform whose edit changes, renames or removes the column `name`; "" for none."""
    match edit:
        case MaskFields(fields) if name in fields:
            return "MaskField"
        case CastFields(types) if name in dict(types):
            return "Cast"
        case ConvertTimestamp(field) if name == field:
            return "TimestampConverter"
        case KeepFields(include, exclude, renames) if (
            name in exclude or (include and name not in include) or any(name in pair for pair in renames)
        ):
            return "ReplaceField"
        case ExtractField() | HoistField():
            return type(edit).__name__
    return ""


def condition_on(setting: str, condition: Condition, spec: RecordSpec) -> Condition:
    """Return the condition for records of this spec: a truth value, or a condition on columns.

    `setting`: of the transform, for messages. Raise ConfigError for records that have none of these values, and for a
    column that an earlier transform has edited.
    """
    try:
        if spec.value is ValueShape.ENVELOPE:
            return of_operation(condition, spec.op, is_row=False)
        if spec.value is ValueShape.ROW:
            _refuse_edited(setting, condition, spec)
            return of_operation(condition, spec.op, is_row=True, known=_known(spec))
    except NotUnderstoodError as error:
        raise ConfigError(f"transforms.{setting}: {error}", "Correct the condition.") from None
    raise ConfigError(
        f"transforms.{setting}: the script asks for value.op or columns, which records of topic {spec.topic} do"
        " not have",
        f"Set transforms.{setting.partition('.')[0]}.topic.regex to the topics of tables.",
    )
