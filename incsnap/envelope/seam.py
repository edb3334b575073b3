"""The seam in topics that another engine has written: which records of the stream are there already.

A job that takes over from a connector reads the binlog from the connector's offset on. The topics may have more than
the offset says, and one partition more than another. The connector has written each partition in the order of the
binlog. So a record is there if its place is before the end of its partition. An update that changes a key has three
records at one place: a deletion, its tombstone and a creation. They are told apart by their number.

Records without a key have no partition of their own, also in a topic that has records with a key. Their places are
listed one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incsnap.columns.arrow import TextArray
from incsnap.columns.variable import Bools, Ints
from incsnap.envelope.record_images import DELETE, TOMBSTONE
from incsnap.events import StreamPosition, file_number

#: Numbers of the records at one place: a deletion, its tombstone, and a creation or an update.
DELETION_STEP, TOMBSTONE_STEP, ROW_STEP = range(3)


@dataclass(frozen=True, slots=True, order=True)
class RecordPlace:
    """The place of a record in the binlog. Places are ordered as the server writes."""

    file: int  #: number of the binlog file
    pos: int  #: first byte of the rows event
    row: int = 0  #: number of the row in its event
    step: int = 0  #: number of the record among those of the row

    @property
    def next(self) -> RecordPlace:
        """The place of the next record of the row, if there is one."""
        return RecordPlace(self.file, self.pos, self.row, self.step + 1)


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The end of a partition: the place of the first record that it may lack."""

    topic: str  #: name of the topic
    partition: int  #: number of the partition
    end: RecordPlace  #: exclusive


@dataclass(frozen=True, slots=True)
class Keyless:
    """The places of the records without a key that a topic has."""

    topic: str  #: name of the topic
    places: tuple[tuple[int, int, int], ...]  #: (file, pos, row) of each, as in RecordPlace


@dataclass(frozen=True, slots=True)
class BegunTransaction:
    """A compressed transaction in which the stream begins: the topics have its first rows.

    All its records have one position, so no place tells them apart.
    """

    gtid: str  #: its GTID
    events: int  #: number of its first rows events of captured tables that the stream leaves out
    rows: int = 0  #: number of the first rows of the next one that the topics have


@dataclass(frozen=True, slots=True)
class Seam:
    """The records that another engine has written."""

    server_uuid: str  #: server whose binlog the places are of
    least: RecordPlace  #: all topics have all records before this place
    ends: tuple[PartitionEnd, ...] = ()  #: partitions that have more
    keyless: tuple[Keyless, ...] = ()  #: topics of records without a key
    #: place behind the last statement of the topic of schema changes; None: `least`
    statements: RecordPlace | None = None
    begun: str = ""  #: GTIDs whose BEGIN the transaction topic has
    ended: str = ""  #: GTIDs whose END the transaction topic has
    #: The binlog's end when the job asked the server for prepared XA transactions. Each other transaction that was
    #: prepared before the seam has ended before this place. None: the job has not asked yet.
    asked: RecordPlace | None = None
    truncations: tuple[tuple[int, int], ...] = ()  #: (file, pos) of the TRUNCATEs whose records the topics have
    begins_in: BegunTransaction | None = None  #: compressed transaction in which the stream begins; None for none

    @property
    def last(self) -> RecordPlace:
        """The place behind which no topic has a record."""
        places = [RecordPlace(*place).next for each in self.keyless for place in each.places]
        places += [RecordPlace(*place).next for place in self.truncations]
        ends = [self.least, *(each.end for each in self.ends), *places]
        return max([*ends, self.statements] if self.statements is not None else ends)

    def rows_at(self, start: StreamPosition) -> int:
        """Return how many rows of the first rows event behind `start` the topics have, besides those with a place."""
        begun = self.begins_in
        if begun is None or (begun.gtid, begun.events) != (start.open_gtid, start.events_done):
            return 0
        return begun.rows

    def may_have_rows_of(self, file: str) -> bool:
        """Return True if a topic may have rows of a transaction in binlog file `file`; "" is an unknown file."""
        return file_number(file) <= self.last.file

    def has_statement(self, file: str, pos: int) -> bool:
        """Return True if the topic of schema changes has the statement at this place."""
        return RecordPlace(file_number(file), pos) < (self.statements or self.least)

    def has_truncation(self, file: str, pos: int) -> bool:
        """Return True if a topic has the record of the TRUNCATE at this place."""
        place = RecordPlace(file_number(file), pos)
        return place < self.least or (place.file, place.pos) in self.truncations

    def has(self, topics: Sequence[str], topic: Ints | None, partition: npt.NDArray[np.int32], of: Places) -> Bools:
        """Return a mask of the records that the topics have.

        `topics`: names of topics; tables may have the same one. `topic`: of each record the index of its topic; None if
        there is one topic. `partition`: of each record its partition; -1 for a record without a key. `of`: of each
        record its place.
        """
        which = np.zeros(len(partition), np.int64) if topic is None else topic
        ends = {(each.topic, each.partition): each.end for each in self.ends}
        present, inverse = np.unique(np.stack([which, partition]), axis=1, return_inverse=True)
        bounds = [max(self.least, ends.get((topics[at], number), self.least)) for at, number in present.T.tolist()]
        columns = np.array([(each.file, each.pos, each.row, each.step) for each in bounds], np.int64).reshape(-1, 4)
        written = _is_before(of.columns, list(columns[inverse.reshape(-1)].T))
        for each in self.keyless:
            # Several tables may have one topic.
            same = [at for at, name in enumerate(topics) if name == each.topic]
            if same:
                written |= (partition < 0) & np.isin(which, same) & of.among(each.places)
        return written


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The places of records, as columns."""

    file: Ints  #: number of the binlog file
    pos: Ints  #: first byte of the rows event
    row: Ints  #: number of the row in its event
    step: Ints  #: number of the record among those of the row

    @classmethod
    def of(cls, file: TextArray, pos: Ints, row: Ints, op: npt.NDArray[np.uint8]) -> Places:
        """Return the places of records with these binlog files, positions, numbers of rows, and operations.

        `op` has numbers of `record_images`.
        """
        encoded = file.dictionary_encode()
        numbers = np.array([file_number(name) for name in encoded.dictionary.to_pylist()], np.int64)
        step = np.where(op == TOMBSTONE, TOMBSTONE_STEP, np.where(op == DELETE, DELETION_STEP, ROW_STEP))
        return cls(numbers[encoded.indices.to_numpy(zero_copy_only=False)], pos, row, step)

    @property
    def columns(self) -> Sequence[Ints]:
        """The four numbers of each place, the most significant first."""
        return (self.file, self.pos, self.row, self.step)

    def before(self, place: RecordPlace) -> Bools:
        """Return a mask of the records before `place`."""
        return _is_before(self.columns, (place.file, place.pos, place.row, place.step))

    def among(self, places: Sequence[tuple[int, int, int]]) -> Bools:
        """Return a mask of the records whose event and row are among `places`."""
        known = set(places)
        of_records = zip(self.file.tolist(), self.pos.tolist(), self.row.tolist(), strict=True)
        return np.array([place in known for place in of_records], np.bool_)


def _is_before(left: Sequence[Ints], right: Sequence[Ints | int]) -> Bools:
    """Return a mask of the places of `left` that are before those of `right`."""
    before = np.zeros(len(left[0]), np.bool_)
    same = np.ones(len(left[0]), np.bool_)
    for own, other in zip(left, right, strict=True):
        before |= same & (own < other)
        same &= own == other
    return before
