"""The places of the fields of JSON envelopes, found for a whole column at once.

An envelope is `{"before":...,"after":...,"source":{...},...,"op":"r",...}`. In a text of JSON each quote has a
backslash. So the name of a field with its quotes stands nowhere else, and a name at any place is the field.

The records of a column are alike: from `source` on, they have the same length or one of a few. So a name is searched
for in one record, and then looked for at the same distance from the end in all others (`_positions`). That takes a
third of the time of a search. Records that are not alike are searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray
from incsnap.columns.gather import binary
from incsnap.columns.hashing import spans_of
from incsnap.columns.packets import Spans

Positions = npt.NDArray[np.int64]

_AFTER, _SOURCE, _OP, _FILE = b'"after":', b',"source":{', b',"op":"', b',"file":"'
#: Distances that are tried, before the records that are left are searched.
_GUESSES = 64
#: Records without the name, after which no distance is tried any more.
_ABSENT = 4
#: Bytes in which the name of a binlog file, a position and the number of a row have room.
_PLACE_BYTES = 160
_PLACE = r'^,"file":"(?P<file>[^"]+)","pos":(?P<pos>[0-9]+),"row":(?P<row>[0-9]+)'
_NO_FILE = b',"file":""'
#: The types of the columns of a place: file, position and row.
PLACE_TYPES = (pa.string(), pa.int64(), pa.int64())


@dataclass(frozen=True, slots=True, eq=False)
class Envelopes:
    """The places of envelopes in the bytes of a column. A tombstone has spans of length 0."""

    rows: Spans  #: `after`; length 0 for a deletion
    kinds: npt.NDArray[np.uint8]  #: the letter of `op`; 0 for a tombstone
    sources: Spans  #: from `source` up to `op`

    @property
    def is_row(self) -> npt.NDArray[np.bool_]:
        """Return True for each record that shows a row."""
        return np.asarray(self.rows.lengths > 0)

    def places(self) -> tuple[Array, Array, Array] | None:
        """Return file, position and row of each event, null without a file. Return None if a source has another form.

        Rows of one chunk of a snapshot have one text, which is parsed once.
        """
        has_source = np.asarray(self.sources.lengths > 0)
        begin = self.sources.start
        end = begin + self.sources.lengths
        at = _positions(self.sources, _FILE, has_source)
        if bool((has_source & (at < 0)).any()):
            return None
        length = np.where(has_source, np.minimum(end - at, _PLACE_BYTES), 0)
        texts = binary(Spans(self.sources.packets, np.where(has_source, at, 0), length)).dictionary_encode()
        parts = pc.extract_regex(texts.dictionary, _PLACE)
        empty = pc.or_(pc.starts_with(texts.dictionary, _NO_FILE), pc.equal(texts.dictionary, b""))
        if not pc.all(pc.or_(parts.is_valid(), empty)).as_py():
            return None
        file, pos, row = (
            pc.struct_field(parts, name).cast(pa.string()).cast(type_).take(texts.indices)
            for name, type_ in zip(("file", "pos", "row"), PLACE_TYPES, strict=True)
        )
        return file, pos, row


def find_envelopes(values: BytesArray) -> Envelopes | None:
    """Return where the fields of envelopes lie; None if a value has another form. A null is a tombstone."""
    spans = spans_of(values)
    packets, begin = spans.packets, spans.start
    is_there = ~np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    op = _positions(spans, _OP, is_there)
    up_to_op = Spans(packets, begin, np.where(is_there, op - begin, 0))
    if bool((is_there & (op < 0)).any()):
        return None
    source = _positions(up_to_op, _SOURCE, is_there)
    if bool((is_there & (source < 0)).any()):
        return None
    after = _positions(Spans(packets, begin, np.where(is_there, source - begin, 0)), _AFTER, is_there, from_end=False)
    if bool((is_there & (after < 0)).any()):
        return None
    kinds = np.where(is_there, packets.data[np.where(is_there, op + len(_OP), 0)], 0).astype(np.uint8)
    is_row = np.isin(kinds, np.frombuffer(b"cur", np.uint8))
    start = np.where(is_row, after + len(_AFTER), 0)
    has_no_row = (kinds == ord("d")) | (kinds == ord("t"))
    if not (~is_there | has_no_row | (is_row & (packets.data[start] == ord("{")))).all():
        return None
    rows = Spans(packets, start, np.where(is_row, source - start, 0))
    return Envelopes(rows, kinds, Spans(packets, np.where(is_there, source, 0), np.where(is_there, op - source, 0)))


def _positions(spans: Spans, name: bytes, is_there: npt.NDArray[np.bool_], *, from_end: bool = True) -> Positions:
    """Return the position of `name`, which has 8 to 16 bytes or is `,"op":"`, in each value of `is_there`, else -1.

    `from_end`: whether the distance to the end is that of many values, else that from the beginning.
    """
    words, begin = spans.packets.words, spans.start
    end = begin + spans.lengths
    base, sign = (end, -1) if from_end else (begin, 1)
    positions = np.full(len(begin), -1, np.int64)
    left = np.flatnonzero(is_there)
    absent: list[int] = []
    for _ in range(_GUESSES):
        if not len(left) or len(absent) > _ABSENT:
            break
        first = int(left[0])
        text = spans.packets.data[int(begin[first]) : int(end[first])].tobytes()
        place = text.find(name)
        if place < 0:
            absent.append(first)
            left = left[1:]
            continue
        distance = abs(int(begin[first]) + place - int(base[first]))
        at = base[left] + sign * distance
        is_inside = (at >= begin[left]) & (at + len(name) <= end[left])
        is_here = is_inside & _stands(words, np.where(is_inside, at, 0), name)
        positions[left[is_here]] = at[is_here]
        left = left[~is_here]
    if len(left):
        rest = binary(Spans(spans.packets, begin[left], spans.lengths[left]))
        places = pc.find_substring(rest, name).to_numpy().astype(np.int64)
        positions[left] = np.where(places < 0, -1, begin[left] + places)
    return positions


def _stands(words: npt.NDArray[np.uint64], at: Positions, name: bytes) -> npt.NDArray[np.bool_]:
    """Return True for each position at which the bytes of `name` stand."""
    is_here = np.ones(len(at), np.bool_)
    for offset, part in _parts(name):
        mask = np.uint64((1 << 8 * len(part)) - 1)
        is_here &= (words[at + offset] & mask) == np.uint64(int.from_bytes(part, "little"))
    return is_here


def _parts(name: bytes) -> Sequence[tuple[int, bytes]]:
    """Return parts of `name` of at most 8 bytes, with their offsets."""
    return [(offset, name[offset : offset + 8]) for offset in range(0, len(name), 8)]
