"""A Kafka Connect schema as a plain value: what a field of a record is, whatever format it is then written in.

https://kafka.apache.org/documentation/#connect_schemas; the logical names are Debezium's and Connect's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Schema:
    """``type``: int8 int16 int32 int64 float32 float64 boolean string bytes struct array map.

    ``parameters`` are (name, value) pairs in order; ``fields`` (name, schema) pairs of a struct; ``items`` the element
    of an array or the value of a map of strings. ``default`` is the value as Connect's JsonConverter would write it.
    """

    type: str
    optional: bool = False
    name: str | None = None
    version: int | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    default: Any = None
    doc: str | None = None
    fields: tuple[tuple[str, Schema], ...] = ()
    items: Schema | None = None

    def as_optional(self, optional: bool = True) -> Schema:
        return replace(self, optional=optional)


def decimal_schema(precision: int, scale: int, optional: bool) -> Schema:
    """Connect's Decimal: bytes of the unscaled value, the scale beside them."""
    parameters = (("scale", str(scale)), ("connect.decimal.precision", str(precision)))
    return Schema("bytes", optional, "org.apache.kafka.connect.data.Decimal", 1, parameters)
