"""Records of changes of many tables that have a few rows each, built as one batch: each step once for all of them.

Transforms were asked once for each table and kind of record (``written``); what they answered alike is done at once.
Tables in which a row moved to another key, and those whose records go to several topics or are no bytes, are written
one by one (``change_records``), which gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.variable import Bools, Ints, take
from incsnap.envelope.added_fields import change_values, header_maps
from incsnap.envelope.avro_format import AvroKeys
from incsnap.envelope.cells import Pattern
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import Changes, JoinedFormat, ManyTables, TransactionOrder
from incsnap.envelope.json_format import JsonKeys
from incsnap.envelope.json_rows import json_pattern
from incsnap.envelope.partitioner import crc, owners, partition
from incsnap.envelope.record_columns import identities, kinds_of, marks_of, orders_of, spread
from incsnap.envelope.record_images import DELETE, ChangedRows, RecordImages, changed_rows, moves, record_images
from incsnap.envelope.records import batch_of, identity_pattern
from incsnap.envelope.row_changes import unchanged, without_skipped
from incsnap.envelope.source_block import SourceColumns
from incsnap.envelope.table_format import TableFormat
from incsnap.envelope.written import CHANGES, Written
from incsnap.transforms.form import Added, Value

#: Of changes that do not move their row: a creation, an update, a deletion, a tombstone.
_KINDS = CHANGES[:4]


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """How records are written that differ by their tables alone: there is one object for each.

    What a table has of its own (topic, names, schemas, constants of its key) is in its patterns and formats.
    """

    value: Value
    op: str
    fields: tuple[Added, ...]
    headers: tuple[Added, ...]


#: One object for equal ones, which is found by its identity: hashing all added fields takes some µs a table.
_way = lru_cache(maxsize=256)(Way)


@dataclass(frozen=True, slots=True, eq=False)
class RowPatterns:
    """How rows of a table become records. ``topic``: of all that are sent; ``written``: what writes them, each once, by
    which way (``ways``); ``kinds``: which of these each of the four kinds goes by, -1 where it is dropped; ``key``:
    None for a table without one; ``identity``: None where the key serves; ``shown``: of a row as
    skip.messages.without.change looks at it, None where that is not asked for; ``record_bytes``: of a record without
    its row, about."""

    format: TableFormat
    topic: str
    written: tuple[Written, ...]
    ways: tuple[Way, ...]
    kinds: tuple[int, ...]
    key: Pattern | None
    row: Pattern
    identity: Pattern | None
    shown: Pattern | None
    record_bytes: int


def row_patterns(format_: TableFormat) -> RowPatterns | None:
    """None where its records are to be written by themselves."""
    by_kind = [format_.written[kind] for kind in _KINDS]
    sent = [one for one in by_kind if one is not None]
    if not format_.alike or format_.updates or not sent:
        return None
    values, key = [one.value for one in sent if one.value is not None], sent[0].key
    joined = [each for each in values if isinstance(each, JoinedFormat)]
    patterns = [each.pattern() for each in joined]
    if len(joined) < len(values) or any(each != patterns[0] for each in patterns):
        return None
    if not isinstance(key, JsonKeys | AvroKeys | None):
        return None
    once = {id(one): one for one in sent}
    view, envelope = format_.view, format_.envelope
    return RowPatterns(
        format_,
        sent[0].form.topic,
        tuple(once.values()),
        tuple(_way(one.form.value, one.form.op, one.form.fields, one.form.headers) for one in once.values()),
        tuple(list(once).index(id(one)) if one is not None else -1 for one in by_kind),
        None if key is None else key.pattern(),
        patterns[0] if patterns else Pattern(b"", ()),
        identity_pattern(format_),
        json_pattern(view.fields, envelope.modes) if envelope.skip_unchanged else None,
        max((each.constant_bytes for each in joined), default=0),
    )


@dataclass(frozen=True, slots=True, eq=False)
class RowsOfTables:
    """Row images, table by table, each table's in binlog order. ``keys``, ``rows``, ``identities``, ``shown``: of each
    image (``pa.binary()``, null where its table has none); ``image_event``: its event; ``kinds``, ``of_event``: of each
    event its type and its table."""

    tables: Sequence[RowPatterns]
    keys: Any
    rows: Any
    identities: Any
    shown: Any
    image_event: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.uint8]
    of_event: Ints

    @property
    def envelope(self) -> EnvelopeSettings:
        return self.tables[0].format.envelope


@dataclass(frozen=True, slots=True, eq=False)
class ChangesOfTables:
    """What becomes of them. ``moved``: numbers of tables of which there is nothing, because a row of them moved to
    another key; ``records``: all others', those included that are dropped."""

    what: RowsOfTables
    moved: frozenset[int]
    changes: ChangedRows
    records: RecordImages

    @property
    def event(self) -> Ints:
        """The event of each record, ascending."""
        return self.what.image_event[self.changes.image[self.records.change]].astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class RecordsOfTables:
    """Records (RECORDS), table by table, ``table`` of each; ``bucket``: where it goes."""

    records: Any
    table: Ints
    bucket: npt.NDArray[np.int32]


def changes_of_tables(what: RowsOfTables) -> ChangesOfTables:
    """As ``lay_out``, of many tables. Raises ``BinlogError`` for an event type that changes no rows."""
    envelope = what.envelope
    changes = without_skipped(changed_rows(what.tables[0].format.view.shape.id, what.image_event, what.kinds), envelope)
    if envelope.skip_unchanged:
        changes = changes.only(~unchanged(changes, what.shown))
    of_change = what.of_event[what.image_event[changes.image]]
    moved = np.unique(of_change[moves(changes, what.keys)])
    if len(moved):
        changes = changes.only(~np.isin(of_change, moved))
    records = record_images(changes, what.keys, tombstones=envelope.tombstones)
    return ChangesOfTables(what, frozenset(moved.tolist()), changes, records)


def records_of_tables(
    laid: ChangesOfTables,
    source: SourceColumns,
    order: TransactionOrder | None,
    partitions: Mapping[str, int],
    buckets: int,
    *,
    now_us: int,
) -> RecordsOfTables:
    """The arguments as ``change_records`` has them."""
    return _ManyTablesWriter(laid, source, order, now_us).records(partitions, buckets)


class _ManyTablesWriter:
    def __init__(
        self, laid: ChangesOfTables, source: SourceColumns, order: TransactionOrder | None, now_us: int
    ) -> None:
        self._laid, self._source, self._now_us = laid, source, now_us
        what, whole = laid.what, laid.records
        self._what = what
        #: What writes records, each once.
        self._written: list[Written] = []
        self._ways: list[Way] = []
        ids = [table.format.view.shape.id for table in what.tables]
        self._tables = ManyTables(ids, what.of_event, np.zeros(0, np.int64))
        by_kind = self._numbers(what.tables)
        event = laid.event
        number = by_kind[what.of_event[event], kinds_of(whole)]
        # A dropped tombstone says nothing that the deletion before it does not.
        sent = (number >= 0) | whole.has_value
        which = None if sent.all() else sent
        self._out = whole if which is None else whole.only(which)
        self._number = number[sent]
        self._event = event[sent]
        self._order = None if order is None else orders_of(order, whole, which)

    def _numbers(self, tables: Sequence[RowPatterns]) -> Ints:
        """By table and kind the place in ``_written``, -1 where such records are dropped."""
        for table in tables:
            self._written += table.written
            self._ways += table.ways
        firsts = np.cumsum([0, *(len(table.written) for table in tables[:-1])])
        of_table = np.array([table.kinds for table in tables], np.int64)
        return np.where(of_table < 0, -1, of_table + firsts[:, None])

    def records(self, partitions: Mapping[str, int], buckets: int) -> RecordsOfTables:
        what, out, n = self._what, self._out, len(self._out)
        table = what.of_event[self._event]
        keys = take(what.keys, out.key)
        topics = [each.topic for each in what.tables]
        home = partition(keys, np.array([partitions.get(topic, 1) for topic in topics], np.uint32)[table])
        parts = self._parts()
        none = pa.nulls(n, pa.binary())
        identity, old_identity = (none, none)
        if what.identities.null_count < len(what.identities):
            identity, old_identity = identities(out, what.identities)
        values = [(which, self._values(alike, which)) for which, alike in parts if alike[0].has_bytes]
        headers = [(which, self._headers(alike[0], which)) for which, alike in parts if alike[0].form.headers]
        arrays = [
            pa.array(np.where(self._number < 0, -1, home), pa.int32()),
            keys,
            spread(values, n),
            none,
            none,
            identity,
            old_identity,
        ]
        marks = marks_of(out, self._event, self._source) if what.envelope.marked else None
        batch = batch_of(arrays, spread(headers, n) if headers else None, marks=marks)
        crcs = np.array([crc(topic) for topic in topics], np.int64)
        return RecordsOfTables(batch, table, owners(home, crcs[table], buckets))

    def _parts(self) -> list[tuple[Bools, list[Written]]]:
        """Records that are written alike but for their tables, and what writes them."""
        alike: dict[Way, list[int]] = {}
        for number in np.unique(self._number[self._number >= 0]).tolist():
            alike.setdefault(self._ways[number], []).append(number)
        parts = []
        for numbers in alike.values():
            among = np.zeros(len(self._written) + 1, np.bool_)
            among[numbers] = True
            parts.append((among[self._number], [self._written[number] for number in numbers]))
        return parts

    def _values(self, alike: Sequence[Written], which: Bools) -> Any:
        place = {id(one): at for at, one in enumerate(alike)}
        among = np.array([place.get(id(one), -1) for one in self._written], np.int64)
        of_record = among[self._number[which]]
        first = alike[0].value
        if first is None:
            return take(pa.array([one.nothing for one in alike], pa.binary()), of_record)
        assert isinstance(first, JoinedFormat)
        tables = replace(self._tables, of_record=of_record)
        return first.of_tables([one.value for one in alike], tables, self._what.rows, self._changes(which))

    def _headers(self, alike: Written, which: Bools) -> Any:
        values = change_values(alike.form.headers, self._changes(which), self._tables, self._what.envelope)
        return header_maps(alike.form.headers, values, int(which.sum()))

    def _changes(self, which: Bools) -> Changes:
        out, order = self._out, self._order
        return Changes(
            before=out.before[which],
            after=out.after[which],
            event=self._event[which],
            row=self._laid.changes.row[out.change[which]],
            # Headers of a tombstone tell of its deletion.
            op=np.minimum(out.op[which], np.uint8(DELETE)),
            source=self._source,
            order=None if order is None else TransactionOrder(order.total[which], order.of_table[which]),
            now_us=self._now_us,
        )
