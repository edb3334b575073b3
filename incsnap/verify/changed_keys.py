"""The keys that changed in a stretch of the binlog, read by a replication connection of verify's own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow.compute as pc
from pymysql.connections import Connection

from incsnap.binlog.log_files import before_file, log_files
from incsnap.binlog.protocol.dump_connection import connect_beside
from incsnap.binlog.slices import Slice
from incsnap.binlog.table_rows import Charsets, misfit
from incsnap.binlog.tail import Tail
from incsnap.columns.arrow import BytesArray
from incsnap.config.settings import FrameSettings, Settings
from incsnap.ddl.column_origins import changes_indexes_alone
from incsnap.envelope.records import MARKED_OPERATIONS
from incsnap.errors import BinlogError, IncsnapError
from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql.catalog import charsets, shapes_of
from incsnap.mysql.session import dial
from incsnap.snapshot.offset import TopicLayout
from incsnap.tables import TableId, TableShape
from incsnap.tasks.blocks import Run, by_run
from incsnap.tasks.slice_records import change_blocks
from incsnap.verify.allowance import Allowance
from incsnap.verify.compared_sides import MOST_KEYS
from incsnap.verify.proof import Events, Low, RowPlace, TopicKey
from incsnap.verify.record_reading import read_keys
from incsnap.verify.sampling import ALL_KEYS, Sample
from incsnap.verify.table_side import VerifiedTable
from incsnap.verify.verified_tables import without_defaults

#: Bytes of binlog that are decoded at once.
_BATCH_BYTES = 16 << 20
_CREATED, _DELETED = (MARKED_OPERATIONS.index(each) for each in "cd")
#: A row behind all rows of an event.
_LAST_ROW = 1 << 62
#: Seconds without progress after which the server counts as lost.
_SILENCE_SECONDS = 60.0
_AGAIN = "Try again."


class TableChanged(IncsnapError):
    """An error: a statement changed a table while it was compared."""

    hint = "Run the command again when no statement changes the table."

    def __init__(self, message: str, hint: str | None = None, tables: Collection[TableId] = ()) -> None:
        super().__init__(message, hint)
        self.tables = tables  #: changed tables


class TopicChanged(IncsnapError):
    """An error: a topic got more partitions while it was compared."""

    hint = "Run the command again."


class TooManyChanges(IncsnapError):
    """An error: more keys changed during a comparison than can be read again."""

    hint = (
        "Compare fewer tables with --table, or a part with --sample."
        " For a running job set a larger N in incsnap.verify.sample=1/N."
    )


def place_in_log(file: str, pos: int, row: int = 0) -> RowPlace:
    """Return the place. Raise ValueError if the name of the file does not end with a number."""
    return RowPlace(int(file.rpartition(".")[2]), pos, row)


@dataclass(slots=True)
class _KeyEvents:
    """The events of keys that were read so far."""

    chosen: Collection[TopicKey] | None = None  #: keys whose events are noted; None: those of `sample`
    sample: Sample = ALL_KEYS  #: keys whose events are noted, without `chosen`
    last: dict[TopicKey, RowPlace] = field(default_factory=dict)  #: place of the last event of each key
    due: dict[TopicKey, RowPlace] = field(default_factory=dict)  #: as `Events.due`
    changed: set[TopicKey] = field(default_factory=set)  #: keys with an event that is not of the low watermark
    begins: dict[str, RowPlace] = field(default_factory=dict)  #: as `Events.begins`
    _before: tuple[str, int] = ("", 0)  #: GTID and position of the last rows event

    def matters(self, named: Sequence[TopicKey], keys: BytesArray) -> Sequence[bool]:
        """Return True for each key whose events are noted. `named`: `keys` with their topic."""
        if self.chosen is None:
            matters: list[bool] = self.sample.has(keys).tolist()
            return matters
        return [key in self.chosen for key in named]

    def bound(self) -> None:
        """Raise TooManyChanges if more than MOST_KEYS keys are noted."""
        if self.chosen is None and len(self.last) > MOST_KEYS:
            topic, count = Counter(topic for topic, _ in self.last).most_common(1)[0]
            raise TooManyChanges(
                f"More than {MOST_KEYS:,} keys changed while they were compared. {count:,} of the keys are in {topic}"
            )

    def note(self, key: TopicKey, place: RowPlace, due: RowPlace | None) -> None:
        """Note the next event of `key`. `due`: None if the event is due at its place."""
        if place < self.last.get(key, place):
            return
        self.last[key] = place
        self.due.pop(key, None)
        if due is not None:
            self.due[key] = due

    def begin_again(self, topic: str, place: RowPlace) -> None:
        """Forget the noted events of the keys of `topic`, which all lie and are due before `place`."""
        self.begins[topic] = place
        for places in (self.last, self.due):
            for key in [key for key in places if key[0] == topic]:
                del places[key]

    def dues(self, slice_: Slice) -> dict[int, RowPlace]:
        """Return when events of the slice are due, by their index, if this is not their place.

        An event that has the position of the event before lies in a compressed transaction. An event that lies before
        the GTID event of its transaction belongs to an XA transaction.
        """
        rows = np.flatnonzero(slice_.is_rows)
        owners = slice_.transaction_of(rows)
        records, files = slice_.transactions.records[owners], slice_.transactions.files
        begins = records["transaction"]["pos"]
        is_xa = (records["file"] != records["gtid_file"]) | (slice_.positions[rows] < begins)
        gtids = slice_.transactions.gtids()
        dues = {}
        for event, owner, file, begin, late in zip(
            rows.tolist(), owners.tolist(), records["gtid_file"].tolist(), begins.tolist(), is_xa.tolist(), strict=True
        ):
            here = gtids[owner], int(slice_.positions[event])
            if late or here == self._before:
                dues[event] = place_in_log(files[file], begin if late else here[1], _LAST_ROW)
            self._before = here
        return dues


class ChangedKeys:
    """A reader of the binlog for the keys of `tables`."""

    def __init__(
        self,
        connection: Connection[Any],
        settings: Settings,
        tables: Mapping[TableId, VerifiedTable],
        allowance: Allowance,
    ) -> None:
        self._connection, self._tables, self._allowance = connection, tables, allowance
        # Marks name the event of each record, whatever the form of the values.
        self._settings = settings.model_copy(update={"frame": FrameSettings()})
        self._charsets: Charsets = tuple(sorted(charsets(connection).items()))
        self._layout = TopicLayout(1, {table.topic: table.partitions for table in tables.values()})
        self._topics = {table.topic: table for table in tables.values()}

    def events(
        self,
        low: Low,
        since: RowPlace,
        high: tuple[str, int],
        keys: Collection[TopicKey] | None,
        sample: Sample = ALL_KEYS,
    ) -> Events:
        """Return the changes up to `high`: all that are not of `low`, and those of `low` from `since` on.

        `keys`: the keys that matter; None: all of `sample`. Other keys take no memory. The result begins later than
        `since` if the binlog does. If rows of a table do not name their columns, the events of its topic are known only
        behind the last statement that may have changed its columns.

        Raise TableChanged if a statement that is not of `low` changed one of the tables, or if rows without names have
        other columns than the table had. Raise TooManyChanges if more than MOST_KEYS keys of `sample` have changes.
        Raise BinlogError if the server sends nothing.
        """
        begin, since = low.executed, min(since, low.end)
        if since < low.end:
            begin, since = self._before(since, low)
        noted = _KeyEvents(None if keys is None else set(keys), sample)
        altered: dict[str, RowPlace] = {}
        #: Tables with rows that do not name their columns, and those of them whose last rows have other columns.
        unnamed: set[TableId] = set()
        misfits: set[TableId] = set()
        start = StreamPosition(begin, "", 0)
        beside = partial(connect_beside, partial(dial, self._settings.mysql))
        with closing(
            Tail(beside, self._settings.mysql.server_id, start, self._tables.__contains__, None, 4 * _BATCH_BYTES)
        ) as tail:
            deadline = time.monotonic() + _SILENCE_SECONDS
            while not start.reached(*high):
                self._allowance.go_on()
                with self._allowance.work():
                    step = tail.advance(start, _BATCH_BYTES, until=high, wait_seconds=1.0)
                    if step.end == start and time.monotonic() > deadline:
                        raise BinlogError(f"the server does not send the binlog up to {high[0]}:{high[1]}", _AGAIN)
                    redefined = {table for change in step.changes for table in self._follow(change, low, altered)}
                    if step.unnamed:
                        unnamed |= {rows.table for rows in step.unnamed}
                        misfits |= self._misfits(tail.unnamed_maps(start, step.end))
                    for slice_ in tail.slices(start, step.end, 1):
                        self._note(slice_, low, noted, misfits)
                    # With such rows, the step ends at the statement. They were read by the definition behind it.
                    for table in redefined & unnamed:
                        noted.begin_again(self._tables[table].topic, place_in_log(step.end.file, step.end.pos))
                    misfits -= redefined
                    tail.forget(step.end)
                if step.end != start:
                    # The rest behind the work may be longer than the silence.
                    deadline = time.monotonic() + _SILENCE_SECONDS
                start = step.end
        # A statement of `low` may have changed a table behind its definition. Then rows behind it were read wrongly.
        if other := misfits | (self._with_other_keys(unnamed) if unnamed else set()):
            names = ", ".join(sorted(map(str, other)))
            raise TableChanged(f"rows without column names have other columns than {names} had", tables=other)
        return Events(since, noted.last, noted.due, noted.changed, altered, noted.begins)

    def _follow(self, change: SchemaChange, low: Low, altered: dict[str, RowPlace]) -> Collection[TableId]:
        """Note the place of a statement that changed columns or rows. Return the tables whose columns it may change.

        Raise TableChanged if it is not of `low`.
        """
        touched = [table for table in self._tables if change.touches(table)]
        is_index = bool(touched) and changes_indexes_alone(change.sql, change.session)
        gtid = change.origin.gtid if change.origin else ""
        is_new = bool(touched) and not _is_in(gtid, low.executed)
        # An index may be a key, which then tells rows apart and names records.
        if is_index and not (is_new and self._with_other_keys(touched)):
            return ()
        if is_new:
            raise TableChanged(f"a statement changed a table meanwhile: {change.sql[:200]}", tables=touched)
        if change.origin and not (change.truncates or change.moves_rows_in):
            at = place_in_log(change.origin.file, change.origin.pos)
            altered |= {self._tables[table].topic: at for table in touched}
        return () if change.truncates else touched

    def _with_other_keys(self, tables: Collection[TableId]) -> set[TableId]:
        """Return those of `tables` that have other columns or another key on the server now."""
        now = shapes_of(self._connection, sorted(tables))
        return {table for table in tables if now.get(table) != without_defaults(self._tables[table].shape)}

    def _misfits(self, maps: Mapping[TableId, Collection[bytes]]) -> set[TableId]:
        """Return the tables whose shape does not fit one of their table maps without column names."""
        return {
            table
            for table, of_table in maps.items()
            if any(misfit(each, self._tables[table].shape, self._charsets) for each in of_table)
        }

    def _before(self, since: RowPlace, low: Low) -> tuple[GtidSet, RowPlace]:
        """Return the transactions before the file of `since`, and the place from which on all events are read."""
        with self._connection.cursor() as cursor:
            for file, _ in log_files(cursor):
                begin = place_in_log(file, 0)
                if begin.file >= since.file:
                    before = before_file(cursor, file)
                    return before - (before - low.executed), max(since, begin)
        return low.executed, low.end

    def _note(self, slice_: Slice, low: Low, noted: _KeyEvents, misfits: Collection[TableId]) -> None:
        """Note the events of a slice. Rows without column names of the tables `misfits` are left out."""
        shapes = [table.shape for table in self._tables.values()]
        slice_ = slice_.with_definitions(
            tuple(TableShape(shape.id, ()) if shape.id in misfits else shape for shape in shapes)
        )
        files = slice_.transactions.files
        owners = slice_.transaction_of(np.arange(len(slice_)))
        of_event = slice_.transactions.records["file"][np.maximum(owners, 0)].tolist()
        positions = slice_.positions.tolist()
        known = {gtid: _is_in(gtid, low.executed) for gtid in slice_.transactions.gtids()}
        dues = noted.dues(slice_)
        for _, topic, table_runs, records in change_blocks(slice_, self._charsets, self._layout, self._settings, 0):
            runs = table_runs if isinstance(table_runs, tuple) else (Run(topic, "", len(records)),)
            for run, part in by_run(records, runs):
                name, table = run.topic, self._topics[run.topic]
                keys = read_keys(part.column("key"), table.form.of_table)
                named = [(name, key) for key in keys.to_pylist()]
                matters = noted.matters(named, keys)
                marks = part.column("marks")
                events, ops, gtids = (pc.struct_field(marks, field).to_pylist() for field in ("event", "op", "gtid"))
                rows = _row_numbers(events, ops)
                for key, is_noted, event, row, gtid in zip(named, matters, events, rows, gtids, strict=True):
                    if event is None or not is_noted:
                        continue
                    place = place_in_log(files[of_event[event]], positions[event], row)
                    noted.note(key, place, dues.get(event))
                    if not known[gtid]:
                        noted.changed.add(key)
                noted.bound()


def _row_numbers(events: Sequence[int | None], operations: Sequence[int | None]) -> list[int]:
    """Return for each record the number of its row in its event, as `source.row` has it.

    A row whose key changed has a deletion, a tombstone and a creation.
    """
    moved = {event for event, op in zip(events, operations, strict=True) if op == _DELETED}
    numbers: list[int] = []
    before, row = None, -1
    for event, op in zip(events, operations, strict=True):
        row = -1 if event != before else row
        # In an event with deletions a creation belongs to the row of the deletion before.
        row += op is not None and not (op == _CREATED and event in moved)
        numbers.append(row)
        before = event
    return numbers


def _is_in(gtid: str, executed: GtidSet) -> bool:
    return bool(gtid) and GtidSet.parse(gtid) <= executed
