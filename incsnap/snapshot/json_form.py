"""Frozen dataclasses as compact JSON primitives and back, by their type annotations.

A field that has its default value is left out: Spark writes the offset ahead of every batch, and most fields of most
values have theirs. What does not fit the annotations is refused, never guessed: the offset decides what is sent.

Annotations are looked at once for each type, not once for each value: an offset may name hundreds of windows, and is
loaded several times a batch (256 windows, 73 kB of JSON, load in 3 ms).
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast

from incsnap.tables import TableId

T = TypeVar("T")
Loader = Callable[[Any], Any]


def to_json(value: Any) -> Any:
    """Of str, int, float, bool, None, tuples, dicts and frozen dataclasses of these."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if isinstance(value, TableId):
        return [value.database, value.table]
    if isinstance(value, dict):
        return {str(name): to_json(item) for name, item in value.items()}
    found = {}
    for name, default in _defaults(cast(Any, type(value))):
        item = getattr(value, name)
        if default is MISSING or item != default:
            found[name] = to_json(item)
    return found


def from_json(kind: type[T], found: Any) -> T:
    """The value of type ``kind`` that ``to_json`` wrote; ``ValueError`` when ``found`` is not one."""
    loaded: T = _loader(cast(Any, kind))(found)
    return loaded


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((each.name, each.default) for each in fields(kind))


@cache
def _loader(kind: Any) -> Loader:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is TableId:
        return _table
    if kind is Any:
        return lambda found: found
    if origin in (types.UnionType, typing.Union):
        return _optional(_loader(next(each for each in arguments if each is not types.NoneType)))
    if origin is tuple and arguments[-1] is Ellipsis:
        return _list(_loader(arguments[0]))
    if origin is tuple:
        return _row(tuple(map(_loader, arguments)))
    if origin is dict:
        return _dict(_loader(arguments[1]))
    if kind is float:
        return lambda found: float(found) if type(found) in (int, float) else _misfit(found, "float")
    if is_dataclass(kind):
        return _dataclass(cast(type, kind))
    return lambda found: found if type(found) is kind else _misfit(found, kind.__name__)


def _table(found: Any) -> TableId:
    if type(found) is list and len(found) == 2 and type(found[0]) is str and type(found[1]) is str:
        return TableId(*found)
    return cast(TableId, _misfit(found, "a table"))


def _optional(load: Loader) -> Loader:
    return lambda found: None if found is None else load(found)


def _list(load: Loader) -> Loader:
    return lambda found: tuple([load(each) for each in found]) if type(found) is list else _misfit(found, "a list")


def _row(loads: tuple[Loader, ...]) -> Loader:
    def row(found: Any) -> Any:
        if type(found) is not list or len(found) != len(loads):
            return _misfit(found, f"a list of {len(loads)}")
        return tuple(load(each) for load, each in zip(loads, found, strict=True))

    return row


def _dict(load: Loader) -> Loader:
    return lambda found: (
        {name: load(each) for name, each in found.items()} if type(found) is dict else _misfit(found, "an object")
    )


def _dataclass(kind: type) -> Loader:
    hints = typing.get_type_hints(kind)
    loads = {name: _loader(hints[name]) for name, _ in _defaults(kind)}
    needed = {name for name, default in _defaults(kind) if default is MISSING}

    def build(found: Any) -> Any:
        if type(found) is not dict:
            return _misfit(found, kind.__name__)
        if not found.keys() <= loads.keys() or not needed <= found.keys():
            raise ValueError(f"{kind.__name__}: unknown or missing fields among {sorted(found)}")
        return kind(**{name: loads[name](each) for name, each in found.items()})

    return build


def _misfit(found: Any, wanted: str) -> Any:
    raise ValueError(f"{type(found).__name__} where {wanted} belongs")
