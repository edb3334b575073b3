"""Values of other types (Cast), and values that are hidden (MaskField), as Kafka Connect writes them.

https://kafka.apache.org/documentation/#org.apache.kafka.connect.transforms.Cast
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array
from incsnap.connect.java_floats import java_text
from incsnap.connect.schema import Schema
from incsnap.envelope.timestamps import DAY, formatted
from incsnap.errors import ConfigError, ValueRefused

#: Cast's names of types, with Arrow's types.
CAST_TYPES = {
    **{f"int{bits}": getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)},
    "float32": pa.float32(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
}
_PLAIN = frozenset(CAST_TYPES)
#: Connect's types of times -> milliseconds in a unit of their numbers.
_MILLISECONDS: dict[str | None, int] = {
    f"org.apache.kafka.connect.data.{name}": unit for name, unit in (("Date", DAY), ("Time", 1), ("Timestamp", 1))
}
#: Connect's formats of a time of day, of a day, and of other times.
_PATTERNS = ("HH:mm:ss.SSS'Z'", "yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


def cast_schema(schema: Schema, target: str, where: str) -> Schema:
    """Return the schema of a field with the type `target`. Raise ConfigError if its values cannot be converted.

    `where` names the field for messages.
    """
    if schema.type not in _PLAIN or (schema.name or "").endswith("Decimal"):
        raise ConfigError(
            f"Cast cannot convert {where}: its type is {schema.name or schema.type}",
            "Take the field out of spec; or set decimal.handling.mode=double or string, if it is a DECIMAL.",
        )
    return Schema(target, schema.optional, default=_default(schema, target))


def _default(schema: Schema, target: str) -> Any:
    if schema.default is None:
        return None
    return cast_values(pa.array([schema.default], CAST_TYPES[schema.type]), target, schema.name)[0].as_py()


def cast_values(values: Array, target: str, name: str | None = None) -> Array:
    """Return the values with the type `target`, as Java converts them. A null stays null.

    `name` is that of the values' schema. Integers are cut to the bits of the type, and floats to whole numbers within
    its bounds. Raise ValueRefused for a text that is no number.
    """
    kind = CAST_TYPES[target]
    if target == "string" and name in _MILLISECONDS:
        return _dates(values, _MILLISECONDS[name])
    if values.type == kind:
        return values
    if target == "string":
        return java_text(values) if pa.types.is_floating(values.type) else values.cast(pa.string())
    if pa.types.is_string(values.type):
        return _parsed(values, target)
    if target == "boolean":
        numbers = _whole(values, pa.int64()) if pa.types.is_floating(values.type) else values
        return pc.not_equal(numbers, pa.scalar(0, numbers.type))
    if pa.types.is_boolean(values.type):
        return values.cast(pa.int8()).cast(kind)
    if pa.types.is_floating(values.type) and pa.types.is_integer(kind):
        return _whole(values, kind)
    return values.cast(kind, safe=False)


def _dates(values: Array, unit: int) -> Array:
    """Return the texts of Connect's times, which count `unit` milliseconds, as Connect formats a java.util.Date.

    A time before 1970-01-02 is a time of day to Connect, and midnight is a day.
    """
    millis = pa.array(np.asarray(values.fill_null(0)).astype(np.int64) * unit)
    of_day = pc.less(millis, DAY)
    is_day = pa.array(np.asarray(millis) % DAY == 0)
    time, day, whole = (formatted(millis.cast(pa.timestamp("ms")), pattern) for pattern in _PATTERNS)
    texts = pc.if_else(of_day, time, pc.if_else(is_day, day, whole))
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))


def _whole(values: Array, kind: Any) -> Array:
    """Return floats as Java narrows them: towards zero, within the bounds of int or long, then cut to the bits."""
    bits = 64 if kind == pa.int64() else 32
    low, high = -(2.0 ** (bits - 1)), 2.0 ** (bits - 1)
    numbers = np.trunc(np.nan_to_num(np.asarray(values.fill_null(0)).astype(np.float64)))
    inside = np.clip(numbers, low, np.nextafter(high, 0)).astype(np.int64)
    inside[numbers >= high] = 2 ** (bits - 1) - 1
    whole = pa.array(inside, mask=np.asarray(values.is_null()))
    return whole.cast(kind, safe=False)


def _parsed(values: Array, target: str) -> Array:
    """Return the numbers or truth values in texts. A text is true if it is `true` in any letter case."""
    if target == "boolean":
        return pc.equal(pc.utf8_lower(values), "true")
    kind = CAST_TYPES[target]
    try:
        if pa.types.is_integer(kind):
            # Java reads a plus sign and no hexadecimal digits. Arrow reads these, and no plus sign.
            values = pc.replace_substring_regex(values, r"^\+([0-9])", r"\1")
            values = pc.replace_substring_regex(values, "^(-?0[xX])", r"not decimal: \1")
        return values.cast(kind)
    except pa.ArrowInvalid as error:
        raise ValueRefused(
            f"Cast to {target} meets a text that is no such number: {error}",
            "Correct the value, or take the field out of the spec of the Cast.",
        ) from None


def masked_values(schema: Schema, replacement: str, where: str) -> Callable[[Array], Array]:
    """Return the function that hides the values of a field. A null stays null.

    `replacement`: in place of each value; "": the empty value of the type. Raise ConfigError if the type has none, or
    if the replacement is no value of the type. `where` names the field for messages.
    """
    if schema.type not in _PLAIN or (replacement and schema.type == "boolean"):
        raise ConfigError(
            f"MaskField cannot hide {where}: its type is {schema.name or schema.type}",
            "Take the field out of fields, or hide the column with column.mask.with.N.chars.",
        )
    empty: Any = {"string": "", "boolean": False}.get(schema.type, 0)
    if replacement:
        try:
            empty = {"string": str, "float32": float, "float64": float}.get(schema.type, int)(replacement)
        except ValueError:
            raise ConfigError(
                f"MaskField: {replacement!r} is no value for {where}, whose type is {schema.type}",
                "Give the field a transform of its own, with a replacement of its type.",
            ) from None

    def masked(values: Array) -> Array:
        return pc.if_else(values.is_valid(), pa.scalar(empty, values.type), pa.scalar(None, values.type))

    return masked
