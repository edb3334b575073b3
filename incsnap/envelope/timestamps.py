"""Times in other forms, as Kafka Connect's TimestampConverter writes them: to the millisecond, in UTC.

https://kafka.apache.org/documentation/#org.apache.kafka.connect.transforms.TimestampConverter
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array
from incsnap.columns.variable import Ints
from incsnap.connect.schema import Schema
from incsnap.errors import ConfigError, ValueRefused
from incsnap.transforms.record_spec import ConvertTimestamp

_LOGICAL = "org.apache.kafka.connect.data."
#: Units of unix.precision -> how many are a millisecond; negative: how many milliseconds one is.
PRECISIONS = {"seconds": -1000, "milliseconds": 1, "microseconds": 1000, "nanoseconds": 1_000_000}
#: target.type -> the schema's type and name.
TARGETS = {
    "string": ("string", None),
    "unix": ("int64", None),
    "Date": ("int32", f"{_LOGICAL}Date"),
    "Time": ("int32", f"{_LOGICAL}Time"),
    "Timestamp": ("int64", f"{_LOGICAL}Timestamp"),
}
DAY = 86_400_000  #: milliseconds of a day
#: Letters of SimpleDateFormat that are understood -> Arrow's function for the component of a time.
_LETTERS = {"y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second", "S": "millisecond"}
_PART = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")


class _NotUnderstoodError(ValueError):
    """An error: the pattern asks for more than is understood."""


def parts_of(pattern: str) -> list[tuple[str, int] | str]:
    """Return the parts of a pattern of SimpleDateFormat: (letter, how often it stands there), or a text.

    Raise ValueError for letters other than y M d H m s S X Z and z, and for names of months.
    """
    parts: list[tuple[str, int] | str] = []
    at = 0
    while at < len(pattern):
        match = _PART.match(pattern, at)
        if match is None:
            raise _NotUnderstoodError(f"a quote in {pattern!r} does not end")
        text = match[0]
        if match[1] is not None:
            parts.append(match[1].replace("''", "'") or "'")
        elif match[2] is None:
            parts.append(text)
        elif text[0] in "XZz" or (text[0] in _LETTERS and (text[0] != "M" or len(text) <= 2)):
            parts.append((text[0], len(text)))
        else:
            raise _NotUnderstoodError(f"{text!r} is not understood")
        at = match.end()
    return parts


def converted_schema(schema: Schema, edit: ConvertTimestamp, where: str) -> Schema:
    """Return the schema of a field whose time is written in another form.

    Raise ConfigError if the field is no time for Connect. `where` names the field for messages.
    """
    name = (schema.name or "").removeprefix(_LOGICAL)
    is_time = name in ("Date", "Time", "Timestamp") or schema.type in ("int64", "string")
    if not is_time:
        raise ConfigError(
            f"TimestampConverter cannot read {where}: its type is {schema.name or schema.type}",
            "Name a field of INT64, a text, or one of Connect's times (time.precision.mode=connect).",
        )
    if schema.type == "string" and not edit.format:
        raise ConfigError(f"TimestampConverter needs a format to read the text {where}", "Set its format.")
    if schema.type == "string" and any(part in (("y", 1), ("y", 2)) for part in parts_of(edit.format)):
        raise ConfigError(
            f"TimestampConverter cannot read the text {where} by the format {edit.format!r}: the century of two digits"
            " depends on the day on which Java reads them",
            "Write yyyy for years of four digits, or leave the field as it is.",
        )
    kind, logical = TARGETS[edit.target]
    return Schema(kind, schema.optional, logical, None if logical is None else 1)


def convert(values: Array, schema: Schema, edit: ConvertTimestamp) -> Array:
    """Return the times in the form of `edit.target`. A null stays null. `schema` is that of `values`."""
    present = values.is_valid()
    millis = _milliseconds(values, schema, edit)
    return pc.if_else(present, _written(millis, edit), pa.scalar(None, _kind(edit.target)))


def _kind(target: str) -> Any:
    return {"string": pa.string(), "int64": pa.int64(), "int32": pa.int32()}[TARGETS[target][0]]


def _milliseconds(values: Array, schema: Schema, edit: ConvertTimestamp) -> Array:
    """Return the times as milliseconds since 1970 (`pa.int64()`)."""
    name = (schema.name or "").removeprefix(_LOGICAL)
    if schema.type == "string":
        return _parsed(values, edit.format)
    numbers = np.asarray(values.fill_null(0)).astype(np.int64)
    if name == "Date":
        numbers = numbers * DAY
    elif name not in ("Time", "Timestamp"):
        unit = PRECISIONS[edit.precision]
        numbers = numbers * -unit if unit < 0 else _divided(numbers, unit)
    return pa.array(numbers)


def _divided(numbers: Ints, unit: int) -> Ints:
    """Return the numbers divided by `unit` towards zero, as Java divides."""
    quotients: Ints = np.sign(numbers) * (np.abs(numbers) // unit)
    return quotients


def _written(millis: Array, edit: ConvertTimestamp) -> Array:
    numbers = np.asarray(millis.fill_null(0))
    match edit.target:
        case "unix":
            unit = PRECISIONS[edit.precision]
            return pa.array(_divided(numbers, -unit) if unit < 0 else numbers * unit)
        case "Date":
            return pa.array((numbers // DAY).astype(np.int32))
        case "Time":
            return pa.array((numbers % DAY).astype(np.int32))
        case "string":
            return formatted(pa.array(numbers).cast(pa.timestamp("ms")), edit.format)
    return pa.array(numbers)


def formatted(times: Array, pattern: str) -> Array:
    """Return the texts of the times in UTC, by a pattern of SimpleDateFormat."""
    texts: list[Any] = []
    for part in parts_of(pattern):
        if isinstance(part, str):
            texts.append(part)
            continue
        letter, count = part
        if letter in "XZz":
            texts.append({"X": "Z", "Z": "+0000", "z": "UTC"}[letter])
            continue
        number = getattr(pc, _LETTERS[letter])(times)
        if letter == "y" and count == 2:
            number = pc.subtract(number, pc.multiply(pc.floor(pc.divide(number.cast(pa.float64()), 100)), 100))
        text = number.cast(pa.int64()).cast(pa.string())
        texts.append(pc.utf8_lpad(text, count, "0"))
    return pc.binary_join_element_wise(*texts, "")


def _parsed(texts: Array, pattern: str) -> Array:
    """Return the milliseconds since 1970 that the texts mean in UTC. Raise ValueRefused for a text of another form.

    As Java does, read fewer or more digits than the pattern has letters, and leave text behind the pattern unread. Only
    a number directly before another one has as many digits as letters.
    """
    regex, letters = "", []
    parts = parts_of(pattern)
    for part, behind in zip(parts, [*parts[1:], ""], strict=True):
        if isinstance(part, str):
            regex += re.escape(part)
            continue
        letter, count = part
        if letter in "XZz":
            regex += r"(?:Z|UTC|\+00:?00)"
            continue
        digits = rf"\d{{{count}}}" if isinstance(behind, tuple) and behind[0] in _LETTERS else r"\d+"
        if letter in letters:
            regex += digits
        else:
            letters.append(letter)
            regex += f"(?P<{letter}>{digits})"
    parsed = pc.extract_regex(texts, f"^{regex}")
    if parsed.null_count > texts.null_count:
        place = np.flatnonzero(np.asarray(parsed.is_null()) & np.asarray(texts.is_valid()))[0]
        raise ValueRefused(
            f"TimestampConverter cannot read {texts[int(place)].as_py()!r} by the format {pattern!r}",
            "Correct the format of the transform, or the value.",
        )

    def number(letter: str, default: int) -> Any:
        if letter not in letters:
            return np.full(len(texts), default, np.int64)
        return np.asarray(pc.struct_field(parsed, letter).fill_null(str(default)).cast(pa.int64()))

    year, month = number("y", 1970), number("M", 1)
    months = (year - 1970) * 12 + month - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + number("d", 1) - 1
    clock = (number("H", 0) * 60 + number("m", 0)) * 60 + number("s", 0)
    return pa.array(days * DAY + clock * 1000 + number("S", 0))
