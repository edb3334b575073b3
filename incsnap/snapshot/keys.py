"""Keys of rows in canonical text form, and the SQL that reads and compares them.

The boundaries of chunks are stored in Spark's offset (JSON) and written into SQL. The same text serves both:
`key_select` makes the server print a key as text, and `key_literal` makes an SQL literal of that text. The server
compares the literal with the column by the column's own rules: its collation, its sign, its scale. Python never
compares keys, because only MySQL knows its collations.

| column | text | literal | reason |
|---|---|---|---|
| integers, year | digits | the digits | a quoted number would be compared as a double beyond 2**53 |
| decimal | digits, all places | the digits | an exact-value literal |
| float, double | 17 digits | with an exponent | without one it is a DECIMAL; and FLOAT prints 6 digits only |
| text | the text | `_utf8mb4 x'..'` | an introducer makes the column's collation decide; hex needs no escaping |
| binary | hex | `x'..'` | bytes |
| enum, set, bit | the number | the number | they sort by number; an ENUM compares with a string as text |
| date, time, datetime, timestamp | as printed | quoted | so zero dates compare too; TIMESTAMP needs a UTC session |
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from incsnap.errors import UnsupportedType, shorten
from incsnap.tables import BYTE_STRINGS, TEXTS, Column, quote

#: The value of one ordering column as canonical text. None is SQL's NULL, which is less than every other value.
KeyValue = str | None
#: The values of all ordering columns, in the order of the columns.
Key = tuple[KeyValue, ...]


class SharedText(str):
    """A text that a user has given and that several values of the column are shown as.

    The column's character set has several codes for a character, or codes without a character, shown as "?".
    """

    __slots__ = ()


_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bool", "boolean"})
_FLOATS = frozenset({"float", "double"})
#: Types whose values the server orders by a number.
_NUMBERED = frozenset({"enum", "set", "bit"})
#: Character sets that a utf8mb4 connection shows without loss. In others a byte sequence may be no character and be
#: shown as "?". Their keys are therefore the column's bytes, in hex.
_WHOLE = frozenset({"", "utf8mb4", "utf8mb3", "ascii", "latin1"})
_TEMPORAL = frozenset({"date", "time", "datetime", "timestamp"})

_INTEGER_TEXT = re.compile(r"-?[0-9]+\Z")
_DECIMAL_TEXT = re.compile(r"-?[0-9]+(\.[0-9]+)?\Z")
_FLOAT_TEXT = re.compile(r"-?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?\Z", re.IGNORECASE)
_HEX_TEXT = re.compile(r"([0-9A-Fa-f]{2})*\Z")
_TEMPORAL_TEXT = re.compile(r"[-0-9:. ]+\Z")
#: Type of a column -> SQL that prints a value of a column, pattern of this text, SQL of a literal for the text.
_FORMS = {
    **dict.fromkeys(BYTE_STRINGS, ("HEX({})", _HEX_TEXT, "x'{}'")),
    **dict.fromkeys(_FLOATS, ("CAST({} + 0e0 AS CHAR)", _FLOAT_TEXT, "{}")),
    **dict.fromkeys(_NUMBERED, ("CAST({} + 0 AS CHAR)", _INTEGER_TEXT, "{}")),
    **dict.fromkeys(_INTEGERS, ("CAST({} AS CHAR)", _INTEGER_TEXT, "{}")),
    "decimal": ("CAST({} AS CHAR)", _DECIMAL_TEXT, "{}"),
    **dict.fromkeys(_TEMPORAL, ("CAST({} AS CHAR)", _TEMPORAL_TEXT, "'{}'")),
}


def key_select(column: Column) -> str:
    """Return the SQL expression that prints a value of `column` in canonical form, in the connection's character set.

    The expression reads only the column, so an index that has the column covers it. Raise UnsupportedType if the column
    cannot order chunks.
    """
    name = quote(column.name)
    return name if _is_shown_whole(column) else _form(column)[0].format(name)


def can_order(column: Column) -> bool:
    """Whether the column's values can be boundaries of chunks."""
    try:
        key_select(column)
    except UnsupportedType:
        return False
    return True


def can_be_limit(column: Column) -> bool:
    """Whether a text that a user has given can limit a range of the column: the connection shows it without loss."""
    return column.type not in TEXTS or _is_shown_whole(column)


def key_literal(column: Column, value: KeyValue) -> str:
    """Return an SQL literal for `value`, to compare with `column`.

    Raise ValueError if `value` is None or not in the column's canonical form. Raise UnsupportedType if the column
    cannot order chunks.
    """
    if value is None:
        raise ValueError(f"NULL has no literal that compares (column {column.name})")
    if _is_shown_whole(column):
        return f"_utf8mb4 x'{value.encode().hex()}'"
    _, pattern, literal = _form(column)
    if not pattern.match(value):
        raise ValueError(f"{shorten(value)!r} is not a value of column {column.name} ({column.type})")
    return literal.format(f"{value}e0" if column.type in _FLOATS and "e" not in value.lower() else value)


def given_literal(column: Column, value: KeyValue) -> str:
    """Return an SQL literal for a value that a user has given, to compare with `column`.

    The value has the column's canonical form, but a text is always the text itself. Raise as `key_literal` does.
    """
    if value is not None and column.type in TEXTS and not _is_shown_whole(column):
        return f"CONVERT(_utf8mb4 x'{value.encode().hex()}' USING {column.charset})"
    return key_literal(column, value)


def key_fingerprint(
    columns: Sequence[Column], collations: Mapping[str, str] | None = None, descending: Collection[str] = ()
) -> str:
    """Return a text that changes if the order of keys may have changed.

    It has the columns' names, types, ENUM literals, collations and directions. `collations` maps text columns to their
    collation (information_schema.columns.collation_name). An ascending column has no mark, so its text is the one that
    older offsets have, and their tables go on.
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
    """Return a text that changes if a table's rows get another order, another identity or other keys of their records.

    `order`, `identity` and `key` are the columns of these three. If the text changes while the table is read, the table
    is begun again. Otherwise its chunks would no longer cover it, or later rows would have other keys than rows that
    were sent. If the three lists are the same columns and none can be NULL, the text is `key_fingerprint` alone, as in
    older offsets. The text names nullable columns of `key`, because the schema of the record's key shows them.
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
    """Return the key for logs and notifications: values joined with commas, as Debezium does, at most 80 characters."""
    return "<null>" if key is None else shorten(",".join("<null>" if value is None else value for value in key))


def _is_shown_whole(column: Column) -> bool:
    """Return True for a text that the connection shows without loss."""
    return column.type in TEXTS and column.charset in _WHOLE


def _form(column: Column) -> tuple[str, re.Pattern[str], str]:
    """Return the entry of `_FORMS` for a column. Raise UnsupportedType if the column cannot order chunks."""
    if column.type in TEXTS:
        return "HEX({})", _HEX_TEXT, f"_{column.charset} x'{{}}'"
    if form := _FORMS.get(column.type):
        return form
    raise UnsupportedType(
        f"column {column.name} of type {column.type} cannot order the chunks of a table",
        "Name another ordering column with surrogate-key in the signal, one that an index begins with.",
    )
