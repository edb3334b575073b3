"""The rule of `gap_rules` for columns of numbers: which keys of tables and topics differ behind a gap.

Each row and each record becomes a code: a hash of 64 bits for a row, and a small number for a deletion. A row that
differs and has the same hash would not be found: one in 2**64. Everything is sorted NumPy columns, so a million keys
take less than a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from incsnap.columns.arrow import Array, BytesArray
from incsnap.columns.hashing import hash64
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE

Numbers = npt.NDArray[Any]

#: Codes of a key without a row: it is gone, its tombstone is missing, or its last record is neither of both.
_GONE, _INCOMPLETE, _UNKNOWN = 1, 2, 3


@dataclass(frozen=True, slots=True, eq=False)
class CodedRows:
    """Rows of tables, in any order."""

    key: Numbers  #: hash of each key, another one for each table
    code: Numbers  #: code of each row


@dataclass(frozen=True, slots=True, eq=False)
class CodedRecords:
    """Records of topics. Those of one key have the order of their partitions, and then of their offsets."""

    key: Numbers  #: hash of each key, as for rows
    code: Numbers  #: code of each record
    partition: Numbers  #: partition of each record
    is_new: Numbers  #: whether the record lies at the seam or behind it


def codes_of(states: Array, rows: BytesArray, *, tombstones: bool, seed: int) -> Numbers:
    """Return the codes of records from their states, as in `record_reading`, and their rows.

    `tombstones`: whether a tombstone follows each deletion. `seed`: that of the rows' hashes.
    """
    kinds = np.asarray(states)
    deletion = _INCOMPLETE if tombstones else _GONE
    beside = np.select([kinds == TOMBSTONE, kinds == DELETION], [_GONE, deletion], _UNKNOWN).astype(np.int64)
    return np.where(kinds == ROW, hash64(rows, seed).view(np.int64), beside)


def differing(rows: CodedRows, records: CodedRecords) -> tuple[Numbers, Numbers]:
    """Return the indexes of rows that are sent again, and of a record of each key that is deleted.

    A key needs no repair if one of its last records is new, or if all of them show the row that the table has.
    """
    last = _last_of_partitions(records)
    keys, begins = np.unique(records.key[last], return_index=True)
    least = np.minimum.reduceat(records.code[last], begins) if len(keys) else np.zeros(0, np.int64)
    greatest = np.maximum.reduceat(records.code[last], begins) if len(keys) else least
    is_new = np.logical_or.reduceat(records.is_new[last], begins) if len(keys) else np.zeros(0, np.bool_)

    order = np.argsort(rows.key, kind="stable")
    own, code = rows.key[order], rows.code[order]
    # A row that was read twice, because its key has moved between two SELECTs, may have been an older one.
    is_repeated = np.zeros(len(own), np.bool_)
    is_repeated[1:] = own[1:] == own[:-1]
    is_repeated[:-1] |= is_repeated[1:]
    is_right = np.zeros(len(own), np.bool_)
    if len(keys):
        at = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
        shows = (least[at] == code) & (greatest[at] == code) & ~is_repeated
        is_right = (keys[at] == own) & (shows | is_new[at])
    is_alone = np.ones(len(keys), np.bool_)
    if len(own):
        is_alone = own[np.minimum(np.searchsorted(own, keys), len(own) - 1)] != keys
    is_gone = (least == _GONE) & (greatest == _GONE)
    return order[~is_right], last[begins[is_alone & ~is_gone & ~is_new]]


def _last_of_partitions(records: CodedRecords) -> Numbers:
    """Return the index of the last record of each key in each partition, in the order of keys."""
    order = np.argsort(records.key, kind="stable")
    key, partition = records.key[order], records.partition[order]
    return order[np.append((key[1:] != key[:-1]) | (partition[1:] != partition[:-1]), True)] if len(order) else order
