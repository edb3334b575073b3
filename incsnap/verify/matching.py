"""The comparison of hashed sides: which keys differ, and which records repeat an earlier one or are older than one.

The caller gives all rows and records of some keys. Everything is sorted NumPy columns, so a million keys take less than
a second, and no Spark shuffle is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from incsnap.columns.hashing import sorting
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE

Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class HashedRows:
    """Rows of a table, in any order."""

    key: Numbers  #: hash of each key
    row: Numbers  #: hash of each row


@dataclass(frozen=True, slots=True, eq=False)
class HashedRecords:
    """Records of a topic. Those of one key have the order of their partitions, and then of their offsets."""

    key: Numbers  #: hash of each key
    row: Numbers  #: hash of each row, 0 for none
    partition: Numbers  #: partition of each record
    time: Numbers  #: Kafka's time of each record
    state: Numbers  #: a state of `record_reading`
    is_snapshot: Numbers  #: whether a snapshot has read the row
    file: Numbers  #: number of the binlog file of the event, -1 for none
    pos: Numbers  #: position of the event
    row_number: Numbers  #: number of the row in the event


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """The differences of two sides."""

    rows: Numbers  #: indexes of rows whose key differs
    records: Numbers  #: indexes of a record of each key that only the topic has, and should not have
    repeating: Numbers  #: index of a record of each key with records of the two kinds below
    twice: Numbers  #: how many records of such a key repeat an earlier one
    back: Numbers  #: how many records of such a key are older than an earlier one


def match(rows: HashedRows, records: HashedRecords, *, tombstones: bool) -> Differences:
    """Return what differs between the rows of a table and the records of its topic.

    `tombstones`: whether a tombstone belongs behind each deletion of the topic.
    """
    order = sorting(records.key)
    last = _last_records(records, order)
    keys = records.key[last]
    by_key = sorting(rows.key)
    own = rows.key[by_key]
    # A key of several rows is looked at again: at most one of them can be the last record.
    is_repeated = np.zeros(len(own), np.bool_)
    same = own[1:] == own[:-1]
    is_repeated[1:] |= same
    is_repeated[:-1] |= same
    at = np.minimum(np.searchsorted(keys, own), max(len(keys) - 1, 0))
    is_equal = np.zeros(len(own), np.bool_)
    if len(keys):
        shown = last[at]
        is_equal = (keys[at] == own) & (records.state[shown] == ROW) & (records.row[shown] == rows.row[by_key])
    is_equal &= ~is_repeated
    is_gone = records.state[last] == TOMBSTONE
    if not tombstones:
        is_gone |= records.state[last] == DELETION
    is_alone = np.ones(len(keys), np.bool_)
    if len(own):
        is_alone = own[np.minimum(np.searchsorted(own, keys), len(own) - 1)] != keys
    return Differences(by_key[~is_equal], last[is_alone & ~is_gone], *_repetitions(records, order))


def _last_records(records: HashedRecords, order: Numbers) -> Numbers:
    """Return the index of the last record of each key, in the order of keys. `order`: by key, partition and offset.

    The order of a partition is that of its offsets: the clock of a producer may go back. A key that is in several
    partitions moved with the number of partitions, so there the time decides.
    """
    if not len(order):
        return order
    key, partition = records.key[order], records.partition[order]
    ends_run = np.append((key[1:] != key[:-1]) | (partition[1:] != partition[:-1]), True)
    run = order[ends_run]
    run_key = records.key[run]
    if not (run_key[1:] == run_key[:-1]).any():
        return np.asarray(run)
    run = run[np.lexsort((records.partition[run], records.time[run], run_key))]
    run_key = records.key[run]
    return np.asarray(run[np.append(run_key[1:] != run_key[:-1], True)])


def _repetitions(records: HashedRecords, order: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return of each key with repeated or late records: the index of a record, and how many records of either kind."""
    chosen = order[(records.file[order] >= 0) & ~records.is_snapshot[order]]
    starts = _starts(records.key[chosen], records.partition[chosen])
    run = np.cumsum(starts) - 1
    is_several = np.bincount(run, minlength=1)[run] > 1 if len(run) else starts
    chosen, run = chosen[is_several], run[is_several]
    if not len(chosen):
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    event = _ranks(records.file[chosen], records.pos[chosen])
    # The run is part of the number, so the greatest number so far is of the same run, and no earlier run counts.
    number = run * (int(event.max()) + 1) + event
    back = number < np.maximum.accumulate(number)
    # A compressed transaction has one place for all of its events, so the row belongs to the comparison.
    columns = (records.row[chosen], records.row_number[chosen], records.state[chosen], event, run)
    sorted_ = np.lexsort(columns)
    repeats = np.zeros(len(chosen), np.bool_)
    repeats[sorted_] = ~_starts(*(column[sorted_] for column in columns))
    _, first, group = np.unique(records.key[chosen], return_index=True, return_inverse=True)
    twice = np.bincount(group, weights=repeats).astype(np.int64)
    late = np.bincount(group, weights=back).astype(np.int64)
    is_odd = (twice > 0) | (late > 0)
    return chosen[first[is_odd]], twice[is_odd], late[is_odd]


def _starts(*columns: Numbers) -> Numbers:
    """Return True for each element that differs from the one before in one of the columns."""
    starts = np.ones(len(columns[0]), np.bool_)
    if len(starts):
        starts[1:] = False
        for column in columns:
            starts[1:] |= column[1:] != column[:-1]
    return starts


def _ranks(*columns: Numbers) -> Numbers:
    """Return the rank of each element, by the first column first. Equal elements have one rank."""
    order = np.lexsort(columns[::-1])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(_starts(*(column[order] for column in columns))) - 1
    return ranks
