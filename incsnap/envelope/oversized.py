"""Large records of changes: their binlog positions, and columns that are cut so that Kafka accepts the record."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray, Columns, RecordBatch
from incsnap.columns.variable import Ints
from incsnap.envelope.column_rules import matches
from incsnap.envelope.format import Changes, ValueFormat
from incsnap.envelope.masks import cut
from incsnap.envelope.table_view import TableView
from incsnap.errors import shorten
from signals import exact_json

_log = logging.getLogger(__name__)

#: Name of the column with the binlog position of large records; null for all other records.
ORIGIN = "origin"
#: Name of the column with the row's key as text, for large records whose keys are no text (Avro).
ROW_KEY = "row_key"
#: A record whose value has more bytes is large: 64 KiB is far below Kafka's default limit of 1 MB, far above most rows.
_LARGE = 64 << 10
#: The first byte of an Avro key, as the registry's clients write it.
_NO_TEXT = b"\0"


def key_text(key: bytes | None) -> str:
    """Return the values of a record's key, joined with commas. Return the hexadecimal bytes of a key that is not JSON.

    >>> key_text(b'{"schema":{"type":"struct"},"payload":{"id":5,"name":"x"}}'), key_text(bytes([0, 1, 255]))
    ('5,x', '0x0001ff')
    """
    if not key:
        return "<none>"
    try:
        content = exact_json.parsed(key)
    except ValueError:
        return shorten(f"0x{key.hex()}")
    if isinstance(content, dict) and content.keys() == {"schema", "payload"}:
        content = content["payload"]
    values = content.values() if isinstance(content, dict) else (content,)
    return shorten(",".join(map(_value_text, values)))


def _value_text(value: Any) -> str:
    if value is None:
        return "<null>"
    return value if isinstance(value, str) else exact_json.written(value)


def with_origins(records: RecordBatch, what: Changes) -> RecordBatch:
    """Return the records with a column ORIGIN, if some of the records are large; otherwise return them as they are.

    ORIGIN has the binlog position of each large record, for error messages. `records` has the columns of RECORDS.
    `what` are the changes that these records were made from, in the same order.
    """
    large = _large(records)
    if not large:
        return records
    origins: list[str | None] = [None] * len(records)
    for record in large:
        origins[record] = what.source.place(int(what.event[record]), int(what.row[record]))
    return records.append_column(ORIGIN, pa.array(origins, pa.string()))


def with_row_keys(records: RecordBatch, view: TableView, columns: Columns, rows: Ints) -> RecordBatch:
    """Return the records (RECORDS), with a column ROW_KEY if some of them are large and have keys that are no text.

    `rows`: of each record the row of `columns` whose key it has.
    """
    keys = records.column("key")
    large = [record for record in _large(records) if (keys[record].as_py() or b"")[:1] == _NO_TEXT]
    if not large:
        return records
    texts: list[str | None] = [None] * len(records)
    for record in large:
        values = (columns[field.index][int(rows[record])].as_py() for field in view.key)
        texts[record] = shorten(",".join(map(str, values)))
    return records.append_column(ROW_KEY, pa.array(texts, pa.string()))


def _large(records: RecordBatch) -> list[int]:
    """Return the indexes of the large records."""
    values = records.column("value")
    if not len(values) or values.nbytes <= _LARGE or not pa.types.is_binary(values.type):
        return []
    sizes = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    large: list[int] = np.flatnonzero(sizes > _LARGE).tolist()
    return large


class Room(Protocol):
    """The limits of Kafka's topics for the size of a record."""

    def fits(self, topic: str, content: bytes) -> bool:
        """Return True if Kafka accepts a record with this key and value.

        `content`: key and value, one after the other.
        """

    def most(self, topic: str) -> int:
        """Return how many bytes of key and value Kafka accepts, however badly they compress."""


#: While the cut record is still too large, the share that is kept shrinks by a fifth: escapes are not spread evenly
#: over a text. After this many times nothing is kept.
_TIMES = 20


@dataclass(frozen=True, slots=True)
class Shortening:
    """A rule that cuts columns of oversized changes: `incsnap.oversized.change.truncate.columns`.

    Each column loses the same share of its text or bytes, in the row before the change and in the row after it.
    """

    room: Room  #: limits of Kafka's topics
    columns: tuple[str, ...]  #: Java regexes on `db.table.column`

    def shortened(
        self,
        view: TableView,
        topic: str,
        format_: ValueFormat,
        images: Columns,
        what: Changes,
        keys: BytesArray,
        values: Array,
    ) -> BytesArray:
        """Return `values`, with those that are too large for Kafka cut.

        `format_` has made `values` from `images` and `what`. `keys`: of the records. A value stays as it is if it would
        be too large even with nothing left of the columns.
        """
        large = np.flatnonzero(pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False) > _LARGE)
        cut_values: dict[int, bytes] = {}
        for record in large.tolist():
            key, value = keys[record].as_py() or b"", values[record].as_py()
            if self.room.fits(topic, key + value):
                continue
            short = self._cut(
                view, format_, images, what.only(slice(record, record + 1)), value, self.room.most(topic) - len(key)
            )
            if short is not None:
                cut_values[record] = short
                place = what.source.place(int(what.event[record]), int(what.row[record]))
                _log.warning("A change of %s is cut from %d to %d bytes, to fit topic %s: key %s, at %s",
                             view.shape.id, len(value), len(short), topic, key_text(key), place)  # fmt: skip
        if not cut_values:
            return values
        return pa.array([cut_values.get(at, value) for at, value in enumerate(values.to_pylist())], pa.binary())

    def _cut(
        self, view: TableView, format_: ValueFormat, images: Columns, what: Changes, value: bytes, most: int
    ) -> bytes | None:
        """Return the value of one change, cut to `most` bytes; None if the columns that may be cut are too small."""
        rows = [index for index in (int(what.before[0]), int(what.after[0])) if index >= 0]
        own = [None if column is None else column.take(pa.array(rows)) for column in images]
        places = {index: place for place, index in enumerate(rows)}
        before, after = ([places.get(int(each[0]), -1)] for each in (what.before, what.after))
        what = replace(what, before=np.array(before), after=np.array(after))
        table = view.shape.id
        of_key = {field.index for field in view.key}
        named = [
            field.index
            for field in view.fields
            if field.index not in of_key
            and images[field.index].type in (pa.string(), pa.binary())
            and matches(self.columns, f"{table}.{field.column.name}")
        ]

        def encoded(kept: float) -> bytes:
            shorter = [_share(column, kept) if at in named else column for at, column in enumerate(own)]
            content: bytes = format_.changes(shorter, what)[0].as_py()
            return content

        least = len(encoded(0.0)) if named else len(value)
        if least > most:
            return None
        kept = (most - least) / (len(value) - least)
        for _ in range(_TIMES):
            if len(short := encoded(kept)) <= most:
                return short
            kept *= 0.8
        return encoded(0.0)


def _share(column: Array, kept: float) -> Array:
    """Return the first part of each value of a column of texts or bytes. `kept`: its share of the value, 0 to 1."""
    lengths: Sequence[int | None] = (
        pc.binary_length(column) if column.type == pa.binary() else pc.utf8_length(column)
    ).to_pylist()
    parts = [cut(column.slice(at, 1), int((length or 0) * kept)) for at, length in enumerate(lengths)]
    return pa.concat_arrays(parts)
