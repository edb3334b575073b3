"""The reading of one partition of a connector's topic, up to the record that the job sends first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, RecordBatch
from incsnap.envelope.seam import DELETION_STEP, ROW_STEP, TOMBSTONE_STEP, RecordPlace
from incsnap.errors import ConfigError
from incsnap.events import file_number
from incsnap.verify.record_reading import DELETION, TOMBSTONE, TRUNCATED, UNREADABLE
from incsnap.verify.topic_side import PartitionPart


@dataclass(frozen=True, slots=True)
class OffsetEvent:
    """The records of the event that the offset is in."""

    rows: int = 0  #: insertions and updates
    deletions: int = 0  #: deletions, also those of updates that change a key
    again: int = 0  #: how many of them are counted as records that come again

    def __add__(self, other: OffsetEvent) -> OffsetEvent:
        return OffsetEvent(self.rows + other.rows, self.deletions + other.deletions, self.again + other.again)

    def covered(self, row: int) -> int:
        """Return how many of the records `again` do not come again: those of the event's rows before number `row`.

        The records must be all those of the event. An update that changes a key has a deletion and a row.
        """
        behind = max(0, max(self.rows, self.deletions) - row)
        return max(0, self.again - behind * (bool(self.rows) + bool(self.deletions)))


class PartitionReading:
    """The reading of one partition: what its records say about its end.

    Records without a key do not move the end, because Kafka's producer puts them into any partition. The tables of one
    topic may be with and without a key.
    `least`: place of the offset. `is_exact`: whether the places of records tell the row of an event. Otherwise the end
    is before the last event, and all records without a key behind `least` come again. `since`: first offset at which a
    record of another form is refused. Earlier ones are of another time and left out. None: all such records are left
    out.
    """

    def __init__(
        self, part: PartitionPart, least: RecordPlace, *, is_exact: bool = True, since: int | None = 0
    ) -> None:
        self._part, self._begin, self._row = part, RecordPlace(least.file, least.pos), least.row - 1
        self._is_exact, self._since = is_exact, since
        self._behind_end = 0  #: records behind the end that come again
        self._of_last_event = 0  #: records of the last event among `_behind_end`
        self._keyless_again = 0  #: records without a key that come again
        self._at_offset = OffsetEvent()  #: `again` counts only records without a key; `of_offset` adds those with a key
        self._deleted: bytes | None = None  #: key of the deletion at the end
        self.lacks_tombstone = False  #: whether the last record with a place is a deletion that no tombstone follows
        self.first: RecordPlace | None = None  #: place of the first record with a place
        self.end: RecordPlace | None = None  #: place of the first record that is sent again; None: unknown
        self.last: tuple[RecordPlace, int] | None = None  #: place and offset of the last record with a place
        self.keyed: tuple[RecordPlace, int] | None = None  #: the same of the last record with a key
        #: greatest place of a record with a key; it exceeds the last one behind a cut repetition
        self.greatest: RecordPlace | None = None
        self.deletes_before = False  #: whether a record with a key is the deletion of the row before the offset
        self.keyless: set[tuple[int, int, int]] = set()  #: places of records without a key
        self.files: dict[int, str] = {}  #: number of a binlog file -> its name
        self.truncations: set[tuple[str, int]] = set()  #: (file, pos) of the TRUNCATEs with a record

    @property
    def unplaced(self) -> int:
        """Return how many records come again, because their places are unknown.

        All records of the offset's event count, also those of its rows before the offset.
        """
        return self._behind_end + self._keyless_again

    @property
    def of_offset(self) -> OffsetEvent:
        """Return the records of the offset's event, or of its compressed transaction."""
        is_end = self.keyed is not None and self.keyed[0] == self._begin and not self._is_exact
        return self._at_offset + OffsetEvent(again=self._of_last_event if is_end else 0)

    def add(self, batch: RecordBatch) -> None:
        """Add records (columns of RECORD_PLACES) in their order. Raise ConfigError for a record of another form."""
        batch = self._readable(batch)
        state = batch.column("state")
        # A truncation's record has no key, so it may be in any partition.
        truncations = batch.filter(pc.equal(state, TRUNCATED))
        self.truncations.update(zip(*(truncations.column(name).to_pylist() for name in ("file", "pos")), strict=True))
        is_change = pc.invert(pc.is_in(state, pa.array([TOMBSTONE, TRUNCATED], pa.int8())))
        is_event = pc.and_(is_change, pc.invert(batch.column("is_snapshot")))
        has_place = pc.and_(is_event, batch.column("file").is_valid())
        events = batch.filter(has_place)
        if len(events):
            self._add_events(events)
        self._count_unplaced(batch, pc.and_(is_event, pc.invert(has_place)))
        if self.lacks_tombstone:
            self._add_tombstones(batch)

    def _readable(self, batch: RecordBatch) -> RecordBatch:
        unreadable = pc.equal(batch.column("state"), UNREADABLE)
        offsets = batch.column("offset").filter(unreadable).to_pylist()
        since = self._since
        offset = None if since is None else next((each for each in offsets if each >= since), None)
        if offset is not None:
            raise ConfigError(
                f"{self._part.topic}: the record at offset {offset} of partition {self._part.partition} has another"
                " form than the file describes",
                "Check converters and transforms in the connector's file, and give the worker's file with --worker.",
            )
        return batch.filter(pc.invert(unreadable)) if offsets else batch

    def _add_events(self, events: RecordBatch) -> None:
        names = events.column("file").dictionary_encode()
        numbers = np.array([file_number(name) for name in names.dictionary.to_pylist()], np.int64)
        self.files.update(zip(numbers.tolist(), names.dictionary.to_pylist(), strict=True))
        deletes = events.column("state").to_numpy() == DELETION
        places = np.stack(
            [
                numbers[names.indices.to_numpy()],
                events.column("pos").to_numpy(),
                events.column("row_number").to_numpy(),
                np.where(deletes, DELETION_STEP, ROW_STEP),
            ]
        )
        if not self._is_exact:
            places[2:] = 0
        offsets = events.column("offset")
        self.first = self.first or RecordPlace(*places[:, 0].tolist())
        self.last = RecordPlace(*places[:, -1].tolist()), offsets[-1].as_py()
        has_key = events.column("key").is_valid().to_numpy(zero_copy_only=False)
        if self._is_exact:
            self.keyless.update(map(tuple, places[:3, ~has_key].T.tolist()))
        begin = self._begin
        is_at = (places[0] == begin.file) & (places[1] == begin.pos)
        deletions, again = int((is_at & deletes).sum()), 0
        if self._is_exact:
            self.deletes_before |= bool((is_at & deletes & has_key & (places[2] == self._row)).any())
        if not self._is_exact:
            is_behind = (places[0] > begin.file) | ((places[0] == begin.file) & (places[1] >= begin.pos))
            self._keyless_again += int((is_behind & ~has_key).sum())
            again = int((is_at & ~has_key).sum())
        self._at_offset += OffsetEvent(int(is_at.sum()) - deletions, deletions, again)
        if has_key.any():
            at = offsets[int(np.flatnonzero(has_key)[-1])].as_py()
            self._add_keyed(places[:, has_key], at)
            self.lacks_tombstone = bool(deletes[has_key][-1])

    def _add_keyed(self, places: npt.NDArray[np.int64], offset: int) -> None:
        """Move the end behind records with keys. `offset`: that of the last one."""
        last, greatest = (RecordPlace(*places[:, at].tolist()) for at in (-1, np.lexsort(places[::-1])[-1]))
        goes_on = self.keyed is not None and self.keyed[0] == last and not self._is_exact
        self._behind_end, self._of_last_event = (self._behind_end, self._of_last_event) if goes_on else (0, 0)
        if not self._is_exact and last >= self._begin:
            # The event may have rows that are not there yet.
            number = int(((places[0] == last.file) & (places[1] == last.pos)).sum())
            self._behind_end, self._of_last_event = self._behind_end + number, self._of_last_event + number
        self.greatest = max(self.greatest or greatest, greatest)
        self.keyed = last, offset
        self.end = last.next if self._is_exact else last

    def _count_unplaced(self, batch: RecordBatch, unplaced: Array) -> None:
        """Count the records without a place behind the end."""
        if self.keyed is not None:
            unplaced = pc.and_(unplaced, pc.greater(batch.column("offset"), self.keyed[1]))
        self._behind_end += pc.sum(unplaced).as_py() or 0

    def _add_tombstones(self, batch: RecordBatch) -> None:
        """Move the end behind the tombstone of the deletion that it stands at, if the tombstone is there."""
        assert self.keyed is not None
        columns = (batch.column(name).to_pylist() for name in ("state", "key", "offset"))
        for state, key, offset in zip(*columns, strict=True):
            if offset == self.keyed[1]:
                self._deleted = key
            elif offset > self.keyed[1] and state == TOMBSTONE and key == self._deleted:
                self.lacks_tombstone = False
                if self._is_exact:
                    self.end = replace(self.keyed[0], step=TOMBSTONE_STEP + 1)


def sent_before(least: RecordPlace, readings: Iterable[PartitionReading]) -> RecordPlace:
    """Return the place before which the topics have all records. `least`: place of the connector's offset.

    Debezium gives all records of a row the offset behind the row. Kafka Connect may write this offset as soon as the
    topics have the row's first record, and all records before it. Most rows have one record. A row with a deletion has
    a tombstone and perhaps a creation behind the deletion. So the place is behind the deletion if `readings` have it.
    The ends of the partitions tell whether the other two are there.
    """
    if any(each.deletes_before for each in readings):
        return replace(least, row=least.row - 1, step=DELETION_STEP).next
    return least
