"""Values of a record's key as a consumer holds them, back to the texts that MySQL prints and compares.

A consumer has the key's JSON: an ENUM is a text, BINARY is base64, a DATE is a number of days. `printed` returns what
the text protocol prints for such a value, so `ColumnType.from_text` makes the canonical value of it. `compared` returns
the text of that value for conditions in SQL (`snapshot.keys`). Whether a value has the right form is seen by encoding
the canonical value again: the JSON must be the given one.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from incsnap.tables import BYTE_STRINGS, TEXTS, Column
from incsnap.types.charsets import can_hold
from incsnap.types.modes import Modes

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?Z?\Z")
_DAY_SECONDS = 86_400
#: Microseconds of one unit that a number of `time.precision.mode` counts, as a fraction.
_MILLI, _MICRO, _NANO = (1_000, 1), (1, 1), (1, 1_000)
#: Names of Connect schemas -> the unit of their numbers.
_UNITS = {
    "Timestamp": _MILLI,
    "Time": _MILLI,
    "MicroTimestamp": _MICRO,
    "MicroTime": _MICRO,
    "NanoTimestamp": _NANO,
    "NanoTime": _NANO,
}


def printed(column: Column, schema_name: str, modes: Modes, value: Any, *, boolean: bool = False) -> str | bytes:
    """Return what the text protocol prints for the value `value` of a record's key.

    `schema_name` is the name of the field's Connect schema, "" for none. `value` is JSON, with Decimal for numbers with
    a point. `boolean`: the field shows a TINYINT as a boolean. Raise ValueError, TypeError or KeyError for a value that
    the column does not have.
    """
    kind = column.type
    if boolean or (kind == "bit" and column.length == 1):
        return str(int(_typed(value, bool)))
    if kind in BYTE_STRINGS:
        return _bytes_of(_typed(value, str), modes.binary_handling)
    if kind in TEXTS or kind in ("enum", "set"):
        return str(_typed(value, str))
    form = _FORMS.get(kind)
    if form is not None:
        return form(column, schema_name.rpartition(".")[2], modes, value)
    return str(_integer(column, value))


def compared(column: Column, text: str | bytes) -> str | None:
    """Return the text of a value for conditions in SQL (`snapshot.keys.key_literal`), from what `printed` returned.

    Return None if no row of the table can have the value: an ENUM or a SET has no such literal, or the character set
    has no such character. MySQL refuses to compare a column with a text that it cannot convert. The empty text of an
    ENUM without such a literal is its error value, index 0.
    """
    if isinstance(text, bytes):
        return text.hex()
    if column.type == "enum":
        if text in column.values:
            return str(column.values.index(text) + 1)
        return None if text else "0"
    if column.type == "set":
        chosen = text.split(",") if text else []
        if any(literal not in column.values for literal in chosen):
            return None
        return str(sum(1 << column.values.index(literal) for literal in chosen))
    if column.type in TEXTS and not _has_characters(text, column.charset):
        return None
    return text


def _has_characters(text: str, charset: str) -> bool:
    """Return False if MySQL cannot convert the text to one of the sets that a connection shows without loss."""
    if charset == "utf8mb3":
        return max(text, default="") <= "\uffff"
    return charset not in ("ascii", "latin1") or can_hold(text, charset)


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _number(value: Any) -> int:
    """Return a whole number. A boolean is none, though Python counts it among them."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _bytes_of(text: str, handling: str) -> bytes:
    if handling == "hex":
        return bytes.fromhex(text)
    if handling == "base64-url-safe":
        return base64.b64decode(text, altchars=b"-_", validate=True)
    return base64.b64decode(text, validate=True)


def _integer(column: Column, value: Any) -> int:
    """Return the integer. The mode `long` writes a BIGINT UNSIGNED past 2**63 - 1 as a negative number."""
    if column.type == "bigint" and column.unsigned:
        if isinstance(value, (str, Decimal)):
            return int(value) if isinstance(value, Decimal) else _unscaled(value)
        return _number(value) % (1 << 64)
    return _number(value)


def _unscaled(text: str) -> int:
    """Return the number in Connect's bytes of a Decimal, which are given as base64."""
    return int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)


def _decimal(column: Column, _name: str, modes: Modes, value: Any) -> str:
    if modes.decimal_handling == "precise" and isinstance(value, str):
        # Decimal.scaleb would round to 28 digits, and a DECIMAL has up to 65.
        number = Decimal(f"{_unscaled(value)}E-{column.scale}")
    else:
        number = Decimal(str(value) if isinstance(value, float) else value)
    return f"{number:.{column.scale}f}"


def _floating(column: Column, _name: str, _modes: Modes, value: Any) -> str:
    """Return the digits of the DOUBLE with exactly the column's value: MySQL compares a FLOAT as this DOUBLE."""
    number = float(value)
    if column.type == "float":
        with np.errstate(over="ignore"):
            number = float(np.float32(number))
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is too large, or is no number")
    return repr(number)


def _bits(column: Column, _name: str, _modes: Modes, value: Any) -> str:
    return str(int.from_bytes(base64.b64decode(_typed(value, str), validate=True), "little"))


def _year(_column: Column, _name: str, _modes: Modes, value: Any) -> str:
    return f"{_number(value):04d}"


def _date(_column: Column, name: str, _modes: Modes, value: Any) -> str:
    if name == "IsoDate":
        return str(_typed(value, str)).removesuffix("Z")
    return _day(_EPOCH + timedelta(days=_number(value)))


def _time(column: Column, name: str, _modes: Modes, value: Any) -> str:
    if name == "IsoTime":
        parts = _ISO_TIME.match(_typed(value, str))
        if parts is None:
            raise ValueError(f"{value!r} is no time of day")
        seconds = int(parts[1]) * 3600 + int(parts[2]) * 60 + int(parts[3] or 0)
        micros = seconds * 1_000_000 + int((parts[4] or "").ljust(6, "0")[:6])
    else:
        micros = _micros(value, name)
    seconds, part = divmod(abs(micros), 1_000_000)
    sign = "-" if micros < 0 else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{_fraction(part, column.fraction)}"


def _moment(column: Column, name: str, _modes: Modes, value: Any) -> str:
    if name in _UNITS:
        moment = _EPOCH + timedelta(microseconds=_micros(value, name))
    else:
        moment = datetime.fromisoformat(_typed(value, str))
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    clock = f"{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}"
    return f"{_day(moment)} {clock}{_fraction(moment.microsecond, column.fraction)}"


def _micros(value: Any, name: str) -> int:
    more, fewer = _UNITS[name]
    return _number(value) * more // fewer


def _day(moment: datetime) -> str:
    return f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"


def _fraction(micros: int, digits: int) -> str:
    return f".{micros:06d}"[: digits + 1] if digits else ""


_FORMS: dict[str, Callable[[Column, str, Modes, Any], str]] = {
    "decimal": _decimal,
    "float": _floating,
    "double": _floating,
    "bit": _bits,
    "year": _year,
    "date": _date,
    "time": _time,
    "datetime": _moment,
    "timestamp": _moment,
}
