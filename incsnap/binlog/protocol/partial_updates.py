"""PARTIAL_UPDATE_ROWS events: updates that hold only what changed inside JSON documents, as whole updates.

Written under ``binlog_row_value_options=PARTIAL_JSON``. An after image then begins with value options (packed) and, if
their lowest bit is set, a bit for each JSON column of the table; where it is set, differences stand in the document's
place, behind a length of four bytes. Such an event is rewritten as an ordinary update with empty documents in those
places, and the differences are handed out beside it. Row by row in Python: with that option a server pays more for
computing the differences than this costs.
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
    """``column`` of the event's ``image`` (before images count too) is ``document`` with ``differences`` applied."""

    image: int
    column: int
    document: bytes
    differences: bytes


def whole_update(
    body: bytes, images_at: int, fields: Sequence[Field], is_json: Sequence[bool]
) -> tuple[bytes, list[Patch]]:
    """An update event's body with full images from ``images_at`` on, and what is to be put into them.

    An empty document stands for each that a Patch gives. BinlogError where the event is damaged.
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
    """The null bitmap, and the bytes of each value with its length, none for NULL."""
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
