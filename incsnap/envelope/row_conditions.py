"""Conditions on columns, for whole columns at once: which records a filter keeps, and which topics a router chooses.

Only null equals null, as in Groovy and JavaScript. The language decides whether NULL is less or greater than a value.
A NULL in a column with a DEFAULT reads as the DEFAULT: Connect's classes give it to Debezium's conditions.
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
#: Java's types of whole numbers in a script, with the bits of their size: the first that has room for a number.
_WIDTHS = (("int32", 31), ("int64", 63))
_NUMBERS = frozenset(("int8", "int16", "int32", "int64", "float32", "float64"))
#: First byte of a character in UTF-8 -> a byte that sorts as Java sorts the character.
_JAVA_ORDER = np.arange(256, dtype=np.uint8)
_JAVA_ORDER[[0xEE, 0xEF]] = 0xF5, 0xF6
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
                return np.asarray(compared.fill_null(condition.holds_for_null))

    def _values(self, field: ViewField, columns: Columns, index: Ints | None) -> Array:
        column = columns[field.index]
        chosen: list[Any] = [None] * len(columns)
        chosen[field.index] = column if column is None or index is None else take(column, index)
        values = field.connect(chosen, self._modes)
        default = field.schema(self._modes).default
        return values if default is None else values.fill_null(pa.scalar(default, values.type))

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
                for value in condition.values if isinstance(condition, OneOf) else (condition.value,):
                    if value is not None and not _is_comparable(schema.type, value):
                        raise self._wrong(f"compares {name} with {value!r}, which is of another type")
                    if isinstance(condition, OneOf) and condition.in_groovys_list and _is_missed(schema.type, value):
                        raise self._wrong(
                            f"looks for {name} in a list with {value}, which Groovy never finds there"
                            f" (write {name} == {value} instead)"
                        )

    def _wrong(self, why: str) -> ConfigError:
        return ConfigError(
            f"transforms.{self._name} {why} of {self._view.shape.id}",
            f"Correct the condition; or let topic.regex or a predicate (TopicNameMatches) keep transforms.{self._name}"
            " from this table.",
        )


def _one_of(array: Array, values: Sequence[Value]) -> Bools:
    """Return a mask of the values that are one of `values`."""
    masks = [np.asarray(array.is_null())] if None in values else []
    masks += [np.asarray(pc.equal(*_same_type(array, value)).fill_null(False)) for value in values if value is not None]
    return reduce(np.logical_or, masks, np.zeros(len(array), bool))


def _is_comparable(type_: str, value: Value) -> bool:
    """Return True if values of Connect's type `type_` are compared with `value` as authors mean it."""
    if isinstance(value, bool) or type_ == "boolean":
        return isinstance(value, bool) and type_ == "boolean"
    return isinstance(value, str) == (type_ == "string")


def _is_missed(type_: str, value: Value) -> bool:
    """Return True if Groovy finds no value of Connect's type `type_` in a list that contains the number `value`."""
    if value is None or isinstance(value, bool | str):
        return False
    types = [name for name, bits in _WIDTHS if isinstance(value, int) and -(1 << bits) <= value < 1 << bits]
    return types[:1] != [type_]


def _same_type(array: Array, value: Value) -> tuple[Array, Any]:
    """Return both in a type in which their comparison is that of Groovy and JavaScript."""
    if isinstance(value, str):
        return _in_java_order(array), _in_java_order(pa.array([value]))[0]
    if value is None or isinstance(value, bool):
        return array, pa.scalar(value)
    if isinstance(value, int) and pa.types.is_integer(array.type):
        return array.cast(pa.decimal128(20)), pa.scalar(value, pa.decimal128(20))
    return array.cast(pa.float64()), pa.scalar(float(value))


def _in_java_order(texts: TextArray) -> Array:
    """Return the texts as bytes that sort as Java sorts texts: by their units of UTF-16.

    UTF-8 sorts characters beyond 16 bits last. In UTF-16 they stand before U+E000, whose bytes begin with EE.
    """
    encoded = texts.cast(pa.binary())
    validity, offsets, values = encoded.buffers()
    if values is None:
        return encoded
    sorted_like_java = pa.py_buffer(_JAVA_ORDER[np.frombuffer(values, np.uint8)])
    buffers = [validity, offsets, sorted_like_java]
    return pa.Array.from_buffers(pa.binary(), len(encoded), buffers, offset=encoded.offset)


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
