"""Frozen dataclasses as compact JSON primitives and back, by their type annotations.

A field that has its default value is left out: Spark writes the offset ahead of every batch, and most fields of most
values have theirs. What does not fit the annotations is refused, never guessed: the offset decides what is sent.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json as written

T = TypeVar("T")


def to_json(kind: type[T], value: T) -> Any:
    """``value`` as JSON primitives. ``kind`` is made of str, int, float, bool, None, tuples, dicts and frozen
    dataclasses."""
    return _adapter(cast(Any, kind)).dump_python(value, mode="json", exclude_defaults=True)


def from_json(kind: type[T], content: Any) -> T:
    """The value of type ``kind`` that ``to_json`` wrote; ``ValueError`` when ``content`` is not one."""
    try:
        # By way of text: of objects a strict reading takes no list for a tuple, and a lax one "3" for a number.
        loaded: T = _adapter(cast(Any, kind)).validate_json(written(content), strict=True, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc'])) or kind}: {first['msg']}") from None
    return loaded


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
