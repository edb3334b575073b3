"""The types ENUM and SET: numbers in the binlog, texts everywhere else. Their Connect schemas list their literals."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incsnap.columns.arrow import BytesArray, TextArray
from incsnap.columns.gather import integers, primitive
from incsnap.columns.images import Field
from incsnap.columns.packets import Spans
from incsnap.connect.json_text import strings
from incsnap.connect.schema import Schema
from incsnap.tables import Column
from incsnap.types.charsets import CHARSETS, literal_text, unknown_charset
from incsnap.types.definition import Decode, Family, TypeDefinition
from incsnap.types.text import utf8_text

#: The separator of the literals of a SET. No literal of a SET contains it.
_COMMA = b","

_BEYOND = re.compile("[\U00010000-\U0010ffff]")


def _choice(column: Column) -> TypeDefinition:
    if column.charset not in CHARSETS and column.charset != "binary":
        raise unknown_charset(column)
    chosen, name = (_literal, "Enum") if column.type == "enum" else (_literals, "EnumSet")
    # Debezium 3.6.1 escapes the comma inside a literal, but not the backslash; 3.7 escapes both. information_schema and
    # SHOW CREATE TABLE show "?" for a character beyond U+FFFF, table maps show the character; both must give the same
    # schema.
    literals = [_BEYOND.sub("?", value) for value in column.values]
    schemas = {
        release: Schema("string", column.nullable, "io.debezium.data." + name, 1, (("allowed", _joined(escaped)),))
        for release, escaped in (("3.6", literals), ("3.7", [each.replace("\\", "\\\\") for each in literals]))
    }
    return TypeDefinition(
        arrow=pa.string(),
        # The table map tells how many bytes the number has.
        field=Field,
        decode=chosen(column),
        from_text=_from_text,
        schema=lambda modes: schemas[modes.debezium],
        json_texts=lambda values, _modes: strings(values),
    )


def _joined(literals: Iterable[str]) -> str:
    return ",".join(each.replace(",", "\\,") for each in literals)


def _literal(column: Column) -> Decode:
    """Return the decoder of an ENUM.

    Its values are indexes of literals, from 1, in one byte, or in two bytes if there are more than 255 literals. Index
    0 is the error value "".
    """
    literals = pa.array(["", *column.values], pa.string())

    def decode(spans: Spans) -> pa.Array:
        return literals.take(primitive(_number(spans).view(np.int64), spans.valid, pa.int64()))

    return decode


def _literals(column: Column) -> Decode:
    """Return the decoder of a SET.

    Its values have one bit per literal, the lowest for the first one, in 1 to 8 bytes. The text is the chosen literals,
    joined with commas.
    """
    literals, most = column.values, len(column.values)

    def joined(chosen: int | None) -> str | None:
        """Return the chosen literals, joined with commas; None for NULL. Raise ValueError if a bit has no literal."""
        if chosen is None:
            return None
        if chosen >> most:
            raise ValueError(f"a SET of {most} literals holds bit {chosen.bit_length()}")
        return _with_commas(literal for place, literal in enumerate(literals) if chosen >> place & 1)

    def decode(spans: Spans) -> pa.Array:
        # Columns repeat their combinations, so the text of each combination is made once.
        encoded = primitive(_number(spans), spans.valid, pa.uint64()).dictionary_encode()
        return pa.array(map(joined, encoded.dictionary.to_pylist()), pa.string()).take(encoded.indices)

    return decode


def _from_text(raw: BytesArray) -> TextArray:
    """Return texts as SELECT gives them: the bytes of the literals. A literal that is no text becomes empty."""
    try:
        return utf8_text(raw)
    except pa.ArrowInvalid:
        encoded = raw.dictionary_encode()
        return pa.array(map(_texts, encoded.dictionary.to_pylist()), pa.string()).take(encoded.indices)


def _texts(value: bytes) -> str:
    """Return the literals of one value, joined with commas."""
    return _with_commas(literal_text(literal, "utf8mb4") for literal in value.split(_COMMA))


def _with_commas(literals: Iterable[str]) -> str:
    """Return the literals joined as the server does it: there is no comma behind an empty literal that comes first."""
    return reduce(lambda written, literal: f"{written},{literal}" if written else literal, literals, "")


def _number(spans: Spans) -> NDArray[np.uint64]:
    return integers(spans, spans.length if isinstance(spans.length, int) else 1, signed=False)


TYPES: Family = {"enum": _choice, "set": _choice}
