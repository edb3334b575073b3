"""The reader of PARTIAL_UPDATE_ROWS events, which hold only the changes inside JSON documents.

Servers write them with `binlog_row_value_options=PARTIAL_JSON`. In them an after image begins with value options
(packed). If the lowest bit of the options is set, a bit for each JSON column of the table follows. If a column's bit is
set, the after image has differences in place of the document, after a length of four bytes.

This module rewrites such an event as an ordinary update with empty documents in these places, and returns the
differences beside it. It works row by row in Python: computing the differences costs the server more than that.
https://dev.mysql.com/doc/refman/en/replication-options-binary-log.html#sysvar_binlog_row_value_options
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from incsnap.binlog.protocol.byte_reader import ByteReader
from incsnap.columns.images import Field
from incsnap.errors import BinlogError

_PARTIAL_JSON = 1
_DIFFERENCES_LENGTH = 4


@dataclass(frozen=True, slots=True)
class Patch:
    """The changes inside one JSON document of an event: the new value is `document` with `differences` applied."""

    image: int  #: index of the row image in the event; before images count too
    column: int  #: index of the column
    document: bytes  #: the document before the update, as binary JSON
    differences: bytes  #: the changes, as in the event


def whole_update(
    body: bytes, images_at: int, fields: Sequence[Field], is_json: Sequence[bool]
) -> tuple[bytes, list[Patch]]:
    """Return the event's body as that of an ordinary update, and the patches to apply to its decoded values.

    Row images begin at byte `images_at`. The new body has an empty document for each patch. Raise BinlogError if the
    event is damaged.
    """
    reader = ByteReader(body, "it")
    reader.skip(images_at)
    parts, patches = [body[:images_at]], []
    image = 0
    while reader.left:
        nulls, before = _image(reader, fields)
        parts += [nulls, *before]
        options = reader.length_encoded()
        if options & ~_PARTIAL_JSON:
            raise BinlogError(f"it has the unknown value options {options:#x}")
        bits = b""
        if options & _PARTIAL_JSON:
            bits = reader.take((sum(is_json) + 7) // 8)
        nulls = reader.take((len(fields) + 7) // 8)
        parts.append(nulls)
        documents = 0
        for index, field in enumerate(fields):
            partial = False
            if is_json[index]:
                partial = bool(bits) and bool(bits[documents >> 3] >> (documents & 7) & 1)
                documents += 1
            if nulls[index >> 3] >> (index & 7) & 1:
                continue
            if not partial:
                parts.append(_value(reader, field))
                continue
            if not before[index]:
                raise BinlogError("it changes a part of a JSON document that was NULL")
            differences = reader.take(reader.integer(_DIFFERENCES_LENGTH))
            patches.append(Patch(image + 1, index, before[index][field.size :], differences))
            parts.append(bytes(field.size))
        image += 2
    return b"".join(parts), patches


def _image(reader: ByteReader, fields: Sequence[Field]) -> tuple[bytes, list[bytes]]:
    """Read a row image: return its null bitmap and the bytes of each value with its length, b"" for NULL."""
    nulls = reader.take((len(fields) + 7) // 8)
    values = []
    for index, field in enumerate(fields):
        null = nulls[index >> 3] >> (index & 7) & 1
        values.append(b"" if null else _value(reader, field))
    return nulls, values


def _value(reader: ByteReader, field: Field) -> bytes:
    if not field.prefixed:
        return reader.take(field.size)
    length = reader.take(field.size)
    return length + reader.take(int.from_bytes(length, "little"))
