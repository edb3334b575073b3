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
from incsnap.columns.images import ImageLayout, ValueSpan
from incsnap.errors import BinlogError

_PARTIAL_JSON = 1


@dataclass(frozen=True, slots=True)
class Patch:
    """The changes inside one JSON document of an event: the new value is `document` with `differences` applied."""

    image: int  #: index of the row image in the event; before images count too
    column: int  #: index of the column
    document: bytes  #: the document before the update, as binary JSON
    differences: bytes  #: the changes, as in the event


def whole_update(
    body: bytes, images_at: int, layout: ImageLayout, documents: Sequence[int]
) -> tuple[bytes, list[Patch]]:
    """Return the event as an ordinary UPDATE event without differences, and the JSON changes that were taken out of the
    event.

    `body` is the event's body, and its row images begin at byte `images_at`. `documents` are the indexes of the table's
    JSON columns. In the returned body, a JSON value of which the event has only differences has length 0. A Patch for
    each such value has the document before the update and the differences. Apply the patches after the body is decoded.
    Raise BinlogError if the event is damaged.
    """
    reader = ByteReader(body, "it")
    reader.skip(images_at)
    parts, patches = [body[:images_at]], []
    image = 0
    while reader.left:
        begin, before = reader.at, _image(reader, layout)
        parts.append(body[begin : reader.at])
        options = reader.length_encoded()
        if options & ~_PARTIAL_JSON:
            raise BinlogError(f"it has the unknown value options {options:#x}")
        bits = int.from_bytes(reader.take((len(documents) + 7) // 8), "little") if options else 0
        begin, after = reader.at, _image(reader, layout)
        for index in [index for nth, index in enumerate(documents) if bits >> nth & 1]:
            at, length = after[index]
            if length < 0:
                continue
            if before[index][1] < 0:
                raise BinlogError("it changes a part of a JSON document that was NULL")
            document, differences = (body[first : first + count] for first, count in (before[index], after[index]))
            patches.append(Patch(image + 1, index, document, differences))
            size = layout.fields[index].size
            parts += [body[begin : at - size], bytes(size)]
            begin = at + length
        parts.append(body[begin : reader.at])
        image += 2
    return b"".join(parts), patches


def _image(reader: ByteReader, layout: ImageLayout) -> list[ValueSpan]:
    """Read a row image: return the place of each value in the event's body.

    The differences of a document have a length of four bytes before them, as the document has.
    """
    images, end = layout.places(reader.data, reader.at, len(reader.data), 1)
    reader.skip(end - reader.at if images else reader.left + 1)
    return images[0]
