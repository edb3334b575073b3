"""Conditions of filters and routers: on the operation of a change, and on its columns.

`condition_parser` reads conditions as people write them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

#: Letters of the operations of changes and of snapshot rows.
OPERATIONS = frozenset("crudt")
Value = str | int | float | bool | None


class NotUnderstoodError(ValueError):
    """An error: the condition asks for more than operations and columns, or its syntax is wrong."""


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition that always has the same truth value."""

    holds: bool  #: the truth value
    kind: Literal["Truth"] = "Truth"  #: name of the class where settings are stored as JSON


@dataclass(frozen=True, slots=True)
class OneOf:
    """A condition that a value is one of some values. No value equals null, except null."""

    #: ("op",), ("before",), ("after",), (image, column), or (column,) of a row
    path: tuple[str, ...]
    values: tuple[Value, ...]  #: the values
    #: whether Groovy looks for them in a list, where a number equals another only if Java's class of both is the same
    in_groovys_list: bool = False
    kind: Literal["OneOf"] = "OneOf"  #: name of the class where settings are stored as JSON


@dataclass(frozen=True, slots=True)
class Ordered:
    """A condition that a value is less or greater than another."""

    path: tuple[str, ...]  #: as in `OneOf`
    sign: Literal["<", "<=", ">", ">="]  #: of the comparison
    value: Value  #: a text or a number
    holds_for_null: bool = False  #: whether it holds for the NULL of a column, which the language decides
    kind: Literal["Ordered"] = "Ordered"  #: name of the class where settings are stored as JSON


@dataclass(frozen=True, slots=True)
class Not:
    """A condition that holds where another does not."""

    part: Condition  #: the other condition
    kind: Literal["Not"] = "Not"  #: name of the class where settings are stored as JSON


@dataclass(frozen=True, slots=True)
class All:
    """A condition that holds where all its parts do."""

    parts: tuple[Condition, ...]  #: at least two
    kind: Literal["All"] = "All"  #: name of the class where settings are stored as JSON


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A condition that holds where one of its parts does."""

    parts: tuple[Condition, ...]  #: at least two
    kind: Literal["AnyOf"] = "AnyOf"  #: name of the class where settings are stored as JSON


Condition = Truth | OneOf | Ordered | Not | All | AnyOf


@dataclass(frozen=True, slots=True)
class Choice:
    """A text that conditions choose."""

    condition: Condition  #: decides between the two
    chosen: Choice | str | None  #: where the condition holds; None: none
    otherwise: Choice | str | None  #: where it does not hold
    kind: Literal["Choice"] = "Choice"  #: name of the class where settings are stored as JSON


def of_operation(
    condition: Condition, op: str, *, is_row: bool, known: Mapping[str, Value] = MappingProxyType({})
) -> Condition:
    """Return the condition for changes with the operation `op`: a `Truth`, or a condition on columns alone.

    The paths of the result are (image, column). `is_row`: the value is a row. Its columns are those before a deletion,
    and else those after the change. `known`: values of the row's fields that are no columns.
    """
    match condition:
        case OneOf(("op",), values) if not is_row:
            return Truth(op in values)
        case OneOf((name,), values) if is_row and name in known:
            return Truth(known[name] in values)
        case OneOf(path) | Ordered(path):
            placed = _placed(path, op, is_row=is_row)
            missing = placed[0] == ("after" if op in "dt" else "before" if op in "crt" else "")
            if not missing:
                # An image that is there equals no value.
                return Truth(False) if len(placed) == 1 else replace(condition, path=placed)
            return Truth(isinstance(condition, OneOf) and None in condition.values)
        case Not(part):
            inner = of_operation(part, op, is_row=is_row, known=known)
            return Truth(not inner.holds) if isinstance(inner, Truth) else Not(inner)
        case All(parts) | AnyOf(parts):
            return _joined(type(condition), [of_operation(each, op, is_row=is_row, known=known) for each in parts])
    return condition


def _placed(path: tuple[str, ...], op: str, *, is_row: bool) -> tuple[str, ...]:
    """Return the path with its image in front."""
    if is_row:
        return ("before" if op == "d" else "after", path[-1])
    if path[0] not in ("before", "after"):
        raise NotUnderstoodError(f"value.{'.'.join(path)} is no column: write value.after.{path[-1]}")
    return path


def _joined(kind: type[All] | type[AnyOf], parts: list[Condition]) -> Condition:
    """Return the parts joined by && or ||, without those that always have the same truth value."""
    decides = kind is AnyOf
    if any(isinstance(each, Truth) and each.holds == decides for each in parts):
        return Truth(decides)
    left = [each for each in parts if not isinstance(each, Truth)]
    if not left:
        return Truth(not decides)
    return left[0] if len(left) == 1 else kind(tuple(left))


def asks_for_columns(condition: Condition) -> bool:
    """Return True if the condition asks for more than the operation."""
    return any(path != ("op",) for path in paths_of(condition))


def paths_of(condition: Condition) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the values that the condition asks for."""
    match condition:
        case OneOf(path) | Ordered(path):
            yield path
        case Not(part):
            yield from paths_of(part)
        case All(parts) | AnyOf(parts):
            for each in parts:
                yield from paths_of(each)


def conditions_of(choice: Choice | str | None) -> Iterator[Condition]:
    """Yield the conditions of a choice."""
    if isinstance(choice, Choice):
        yield choice.condition
        yield from conditions_of(choice.chosen)
        yield from conditions_of(choice.otherwise)
