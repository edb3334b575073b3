"""A converter between frozen dataclasses and compact JSON primitives, by their type annotations.

A field with its default value is left out, because Spark writes the offset ahead of every batch, and most fields have
their default. A value that does not fit the annotations is refused and never guessed: the offset decides what is sent.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json as written

T = TypeVar("T")


def to_json(kind: type[T], value: T) -> Any:
    """Return `value` as JSON primitives.

    `kind` is its type, made of str, int, float, bool, None, tuples, dicts and frozen dataclasses.
    """
    return _adapter(cast(Any, kind)).dump_python(value, mode="json", exclude_defaults=True, by_alias=True)


def from_json(kind: type[T], content: Any) -> T:
    """Return the value of type `kind` that `to_json` wrote. Raise ValueError if `content` does not fit `kind`."""
    try:
        # Go through text: a strict reading of objects takes no list for a tuple, and a lax one takes "3" for a number.
        loaded: T = _adapter(cast(Any, kind)).validate_json(written(content), strict=True, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc'])) or kind}: {first['msg']}") from None
    return loaded


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return pydantic's adapter for the type."""
    return TypeAdapter(kind)
