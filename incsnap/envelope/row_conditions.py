"""Conditions on columns, for whole columns at once: which records a filter keeps, and which topics a router chooses.

A comparison with null holds for null alone, as in Groovy and JavaScript. NULL is neither less nor greater than a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, Columns, TextArray
from incsnap.columns.variable import Bools, Ints, take
from incsnap.envelope.row_topics import is_topic_name
from incsnap.envelope.table_view import TableView, ViewField
from incsnap.errors import ConfigError
from incsnap.transforms.conditions import (
    All,
    AnyOf,
    Choice,
    Condition,
    Not,
    OneOf,
    Ordered,
    Truth,
    Value,
    conditions_of,
)
from incsnap.transforms.record_spec import CaseRoute, RecordSpec
from incsnap.types.modes import Modes

#: A comparison of Arrow -> its function.
_COMPARED = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_NUMBERS = frozenset(("int8", "int16", "int32", "int64", "float32", "float64"))
#: Image -> the values of a column in it, one per record.
Images = Mapping[str, Callable[[ViewField], Array]]


class RowConditions:
    """Conditions on the columns of one table.

    The constructor raises ConfigError for a column that the table does not have, or whose type cannot be compared.
    """

    def __init__(self, view: TableView, name: str, conditions: Sequence[Condition], modes: Modes) -> None:
        self._view, self._name, self._modes = view, name, modes
        self._fields = {field.name: field for field in view.fields}
        self._conditions = tuple(conditions)
        for condition in conditions:
            self._check(condition)

    def changes(self, images: Columns, before: Ints, after: Ints) -> Bools:
        """Return a mask of the records for which all conditions hold. `before`, `after`: indexes of row images."""
        return self.all_hold(self.of_images(images, before, after), len(after))

    def reads(self, columns: Columns, rows: int) -> Bools:
        """Return a mask of the rows that a SELECT has read for which all conditions hold."""
        return self.all_hold(self.of_rows(columns), rows)

    def of_images(self, images: Columns, before: Ints, after: Ints) -> Images:
        """Return the values of columns before and after changes."""
        index = {"before": before, "after": after}

        def values(image: str) -> Callable[[ViewField], Array]:
            return lambda field: self._values(field, images, index[image])

        return {image: values(image) for image in index}

    def of_rows(self, columns: Columns) -> Images:
        """Return the values of columns that a SELECT has read."""
        return {"after": lambda field: self._values(field, columns, None)}

    def all_hold(self, images: Images, records: int) -> Bools:
        """Return a mask of the records for which all conditions hold."""
        holding = [self.holds(each, images, records) for each in self._conditions]
        return reduce(np.logical_and, holding, np.ones(records, bool))

    def holds(self, condition: Condition, images: Images, records: int) -> Bools:
        """Return a mask of the records for which the condition holds."""
        match condition:
            case Truth(holds):
                return np.full(records, holds)
            case Not(part):
                return ~self.holds(part, images, records)
            case All(parts):
                return reduce(np.logical_and, (self.holds(each, images, records) for each in parts))
            case AnyOf(parts):
                return reduce(np.logical_or, (self.holds(each, images, records) for each in parts))
            case OneOf(path) | Ordered(path):
                image, name = path
                values = images[image](self._fields[name])
                if isinstance(condition, OneOf):
                    return _one_of(values, condition.values)
                compared = _COMPARED[condition.sign](*_same_type(values, condition.value))
                return np.asarray(compared.fill_null(False))

    def _values(self, field: ViewField, columns: Columns, index: Ints | None) -> Array:
        column = columns[field.index]
        chosen: list[Any] = [None] * len(columns)
        chosen[field.index] = column if column is None or index is None else take(column, index)
        return field.connect(chosen, self._modes)

    def _check(self, condition: Condition) -> None:
        match condition:
            case Not(part):
                self._check(part)
            case All(parts) | AnyOf(parts):
                for each in parts:
                    self._check(each)
            case OneOf((_, name)) | Ordered((_, name)):
                field = self._fields.get(name)
                if field is None:
                    raise self._wrong(f"asks for the column {name}, which is none of the columns that are written")
                schema = field.schema(self._modes)
                if schema.type not in (*_NUMBERS, "string", "boolean"):
                    raise self._wrong(f"compares {name}, whose type is {schema.name or schema.type}")
                if isinstance(condition, Ordered) and (schema.type == "string") != isinstance(condition.value, str):
                    raise self._wrong(f"compares {name} with {condition.value!r}, which is of another type")

    def _wrong(self, why: str) -> ConfigError:
        return ConfigError(
            f"transforms.{self._name} {why} of {self._view.shape.id}",
            f"Correct the condition; or let topic.regex or a predicate (TopicNameMatches) keep transforms.{self._name}"
            " from this table.",
        )


def _one_of(array: Array, values: Sequence[Value]) -> Bools:
    """Return a mask of the values that are one of `values`."""
    masks = [np.asarray(array.is_null())] if None in values else []
    masks += [
        np.asarray(pc.equal(*_same_type(array, value)).fill_null(False))
        for value in values
        if value is not None and _is_comparable(array, value)
    ]
    return reduce(np.logical_or, masks, np.zeros(len(array), bool))


def _is_comparable(array: Array, value: Value) -> bool:
    """Return True if values of the array can equal `value`: a text equals no number."""
    if pa.types.is_string(array.type):
        return isinstance(value, str)
    if pa.types.is_boolean(array.type):
        return isinstance(value, bool)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same_type(array: Array, value: Value) -> tuple[Array, Any]:
    if isinstance(value, float):
        return array.cast(pa.float64()), pa.scalar(value)
    if isinstance(value, int) and not isinstance(value, bool) and pa.types.is_integer(array.type):
        return array.cast(pa.decimal128(20)), pa.scalar(value, pa.decimal128(20))
    return array, pa.scalar(value)


class CaseTopics:
    """The topics that conditions on columns choose for the records of one table.

    The constructor raises ConfigError as `RowConditions` does, and for a topic that Kafka does not allow.
    """

    def __init__(self, view: TableView, spec: RecordSpec, route: CaseRoute, modes: Modes) -> None:
        self._choice, self._else = route.choice, spec.topic
        conditions = list(conditions_of(route.choice))
        self._rows = RowConditions(view, f"{route.name}.topic.expression", conditions, modes)
        for topic in _topics(route.choice):
            if not is_topic_name(topic):
                raise ConfigError(
                    f"transforms.{route.name}.topic.expression names the topic {topic!r}, which Kafka does not allow",
                    "Write a name of letters, digits, . _ - alone.",
                )

    def changes(self, images: Columns, before: Ints, after: Ints) -> TextArray:
        """Return the topic of each record. `before`, `after`: indexes of row images."""
        return self._chosen(self._choice, self._rows.of_images(images, before, after), len(after))

    def reads(self, columns: Columns) -> TextArray:
        """Return the topic of each row that a SELECT has read (`pa.string()`)."""
        rows = next(len(column) for column in columns if column is not None)
        return self._chosen(self._choice, self._rows.of_rows(columns), rows)

    def _chosen(self, choice: Choice | str | None, images: Images, records: int) -> TextArray:
        if not isinstance(choice, Choice):
            return pa.repeat(pa.scalar(choice or self._else), records)
        mask = pa.array(self._rows.holds(choice.condition, images, records))
        chosen, otherwise = (self._chosen(each, images, records) for each in (choice.chosen, choice.otherwise))
        return pc.if_else(mask, chosen, otherwise)


def _topics(choice: Choice | str | None) -> list[str]:
    """Return the topics of a choice."""
    if isinstance(choice, Choice):
        return [*_topics(choice.chosen), *_topics(choice.otherwise)]
    return [choice] if choice else []
