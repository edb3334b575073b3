"""Key values as text, and back as SQL literals.

A chunk's borders live in Spark's offset (JSON) and in SQL. One form serves both: the text that ``key_select`` makes
the server print, from which ``key_literal`` builds a literal that the server compares with the column by the column's
own rules: its collation, its sign, its scale. Nothing is ever compared in Python: only MySQL knows its collations.

| column | text | literal | why so |
|---|---|---|---|
| integers, year | digits | the digits | a quoted number would be compared as a double beyond 2**53 |
| decimal | digits, all places | the digits | an exact-value literal |
| float, double | 17 digits | with an exponent | without one it is a DECIMAL; and FLOAT prints 6 digits only |
| text | the text | ``_utf8mb4 x'..'`` | an introducer makes the column's collation decide; hex needs no escaping |
| binary | hex | ``x'..'`` | bytes |
| enum | the index | the index | an ENUM sorts by index but compares with a string as text |
| date, time, datetime, timestamp | as printed | quoted | so zero dates compare too; TIMESTAMP needs a UTC session |
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from incsnap.errors import UnsupportedType, shorten
from incsnap.tables import BYTE_STRINGS, TEXTS, Column, quote

KeyValue = str | None
"""One column's value in canonical text form; None is SQL's NULL, which is less than all values."""
Key = tuple[KeyValue, ...]
"""One value for each ordering column, in order."""

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bool", "boolean"})
_FLOATS = frozenset({"float", "double"})
#: Keys that are numbers to the server, which orders their column by them.
_NUMBERED = frozenset({"enum", "set", "bit"})
#: Character sets that the connection's utf8mb4 shows without loss. Of others a code may be none of their characters and
#: be shown as "?", so their keys are the column's own bytes.
_WHOLE = frozenset({"", "utf8mb4", "utf8mb3", "ascii", "latin1"})
_TEMPORAL = frozenset({"date", "time", "datetime", "timestamp"})

_INTEGER_TEXT = re.compile(r"-?[0-9]+\Z")
_DECIMAL_TEXT = re.compile(r"-?[0-9]+(\.[0-9]+)?\Z")
_FLOAT_TEXT = re.compile(r"-?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?\Z", re.IGNORECASE)
_HEX_TEXT = re.compile(r"([0-9A-Fa-f]{2})*\Z")
_TEMPORAL_TEXT = re.compile(r"[-0-9:. ]+\Z")


def key_select(column: Column) -> str:
    """The SQL expression that prints a value of ``column`` in canonical form, as a string of the connection's charset.

    Reads nothing but the column, so an index that holds the column covers it.
    """
    name = quote(column.name)
    if column.type in TEXTS:
        return name if column.charset in _WHOLE else f"HEX({name})"
    if column.type in BYTE_STRINGS:
        return f"HEX({name})"
    if column.type in _FLOATS:
        return f"CAST({name} + 0e0 AS CHAR)"
    if column.type in _NUMBERED:
        return f"CAST({name} + 0 AS CHAR)"
    if column.type in _INTEGERS or column.type == "decimal" or column.type in _TEMPORAL:
        return f"CAST({name} AS CHAR)"
    raise _unfit(column)


def can_order(column: Column) -> bool:
    """Whether the column's values can be borders of chunks."""
    try:
        key_select(column)
    except UnsupportedType:
        return False
    return True


def key_literal(column: Column, value: KeyValue) -> str:
    """``value`` as a literal to compare with ``column``. ``ValueError`` when it is not the canonical form of one."""
    if value is None:
        raise ValueError(f"NULL has no literal that compares (column {column.name})")
    kind = column.type
    if kind in TEXTS:
        if column.charset in _WHOLE:
            return f"_utf8mb4 x'{value.encode().hex()}'"
        return f"_{column.charset} x'{_checked(_HEX_TEXT, column, value)}'"
    if kind in BYTE_STRINGS:
        return f"x'{_checked(_HEX_TEXT, column, value)}'"
    if kind in _FLOATS:
        text = _checked(_FLOAT_TEXT, column, value)
        return text if "e" in text.lower() else text + "e0"
    if kind in _NUMBERED or kind in _INTEGERS:
        return _checked(_INTEGER_TEXT, column, value)
    if kind == "decimal":
        return _checked(_DECIMAL_TEXT, column, value)
    if kind in _TEMPORAL:
        return f"'{_checked(_TEMPORAL_TEXT, column, value)}'"
    raise _unfit(column)


def key_fingerprint(
    columns: Sequence[Column], collations: Mapping[str, str] | None = None, descending: Collection[str] = ()
) -> str:
    """Return a text that changes when the order of keys may have changed: names, types, ENUM literals, collations,
    directions.

    ``collations``: column name -> collation (information_schema.columns.collation_name) of the text columns. Columns
    that ascend have the text that they had before there were directions, so that tables of theirs go on with an older
    offset.
    """
    collation_of = collations or {}
    parts = (
        f"{c.name} {c.type}{' unsigned' if c.unsigned else ''}({c.length},{c.precision},{c.scale},{c.fraction})"
        f"{c.charset}/{collation_of.get(c.name, '')}{list(c.values) if c.values else ''}"
        f"{' descending' if c.name in descending else ''}"
        for c in columns
    )
    return "; ".join(parts)


def table_fingerprint(
    order: Sequence[Column],
    identity: Sequence[Column],
    key: Sequence[Column],
    collations: Mapping[str, str] | None = None,
    descending: Collection[str] = (),
) -> str:
    """Return a text that changes with what the rows of a table are ordered by, told apart by, and keyed by in records.

    A table whose text changes while it is read is begun again: its chunks no longer cover it, or rows that were sent
    have another key than those that follow. Where all three are the same columns, which cannot be NULL, the text is
    ``key_fingerprint`` alone, as in older offsets. NULL is a part of the record's key because its schema shows it.
    """
    parts = [key_fingerprint(order, collations, descending)]
    nullable = [column.name for column in key if column.nullable]
    if list(identity) != list(order) or list(key) != list(order) or nullable:
        parts += [
            f"identity {key_fingerprint(identity, collations)}",
            f"key {key_fingerprint(key, collations)}",
            f"nullable {nullable}",
        ]
    return " | ".join(parts)


def show_key(key: Key | None) -> str:
    """The key for logs and notifications: values joined with commas, as Debezium does, cut to 80 characters."""
    return "<null>" if key is None else shorten(",".join("<null>" if value is None else value for value in key))


def _checked(pattern: re.Pattern[str], column: Column, value: str) -> str:
    if not pattern.match(value):
        raise ValueError(f"{shorten(value)!r} is not a value of column {column.name} ({column.type})")
    return value


def _unfit(column: Column) -> UnsupportedType:
    return UnsupportedType(
        f"column {column.name} of type {column.type} cannot order the chunks of a table",
        "Name another ordering column with surrogate-key in the signal, one that an index begins with.",
    )
