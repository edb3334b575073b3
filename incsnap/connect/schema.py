"""A Kafka Connect schema as a plain value: the type of a field of a record, independent of the format of records.

https://kafka.apache.org/documentation/#connect_schemas; the logical names are Debezium's and Connect's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Schema:
    """A Kafka Connect schema."""

    type: str  #: int8 int16 int32 int64 float32 float64 boolean string bytes struct array map
    optional: bool = False  #: null is allowed
    name: str | None = None  #: of a struct or a logical type, such as io.debezium.time.Date
    version: int | None = None  #: None for a schema without one
    parameters: tuple[tuple[str, str], ...] = ()  #: (name, value) pairs in order
    default: Any = None  #: as Connect's JsonConverter would write the value; None: no default
    doc: str | None = None  #: text for people; None: none
    fields: tuple[tuple[str, Schema], ...] = ()  #: (name, schema) pairs of a struct
    items: Schema | None = None  #: schema of the elements of an array, or of the values of a map from strings

    def as_optional(self, optional: bool = True) -> Schema:
        """Return a copy with another `optional`."""
        return replace(self, optional=optional)


def decimal_schema(precision: int, scale: int, optional: bool) -> Schema:
    """Return the schema of Connect's Decimal: bytes of the unscaled value, with the scale as a parameter."""
    parameters = (("scale", str(scale)), ("connect.decimal.precision", str(precision)))
    return Schema("bytes", optional, "org.apache.kafka.connect.data.Decimal", 1, parameters)
