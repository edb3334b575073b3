"""The numbers of records in their transactions: among all records, and among those of their table.

Records are counted as Debezium counts them: every record that has a value. An update that moves a row to another key
counts two, a tombstone none, a skipped operation none. The arrays hold all records of a slice, so Python loops over
tables only.

A slice holds whole transactions, except one that began in an earlier batch and one that goes on in the next batch. The
offset has the counts of the earlier batches (`OpenCounts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incsnap.columns.variable import Ints
from incsnap.envelope.format import TransactionOrder
from incsnap.snapshot.offset import OpenCounts


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Records of one table that have a value, in binlog order."""

    table: str  #: name of the table
    event: Ints  #: for each record, the index of its event in the slice
    owner: Ints  #: for each record, the index of its transaction in the slice


def number(counted: Sequence[Counted], begun: OpenCounts | None) -> list[TransactionOrder]:
    """Return for each record its number in its transaction, and its number among the transaction's records of its
    table.

    The result has one element for each element of `counted`. `begun`: the counts of the slice's first transaction in
    earlier batches; None if it begins in this slice. All records of an event must be in one element of `counted`.
    """
    if not counted:
        return []
    sizes = [len(each.event) for each in counted]
    event, owner = (np.concatenate([getattr(each, name) for each in counted]) for name in ("event", "owner"))
    tables = sorted({each.table for each in counted})
    place = {table: at for at, table in enumerate(tables)}
    table = np.repeat([place[each.table] for each in counted], sizes)
    total = np.empty(len(event), np.int64)
    order = np.argsort(event, kind="stable")
    total[order] = _within(owner[order])
    of_table = np.empty(len(event), np.int64)
    order = np.lexsort((event, table, owner))
    of_table[order] = _within((owner * len(tables) + table)[order])
    if begun is not None:
        continued = owner == 0
        total[continued] += begun.total
        before = dict(begun.tables)
        of_table += np.where(continued, np.array([before.get(name, 0) for name in tables])[table], 0)
    ends = np.cumsum(sizes)
    return [
        TransactionOrder(total[end - size : end], of_table[end - size : end])
        for end, size in zip(ends.tolist(), sizes, strict=True)
    ]


def totals(counted: Sequence[Counted], begun: OpenCounts | None) -> list[tuple[int, str, int]]:
    """Return how many records each transaction has for each table, as (transaction, table, records).

    A transaction is its index in the slice. Tombstones do not count. The records of earlier batches count too: `begun`
    has them for the slice's first transaction, and is None if that transaction begins in this slice. The result is
    sorted by transaction, then by the table's name.
    """
    before = dict(begun.tables) if begun is not None else {}
    tables = sorted({each.table for each in counted} | set(before))
    place = {table: at for at, table in enumerate(tables)}
    pairs = [each.owner * len(tables) + place[each.table] for each in counted]
    pairs.append(np.array([place[name] for name in before], np.int64))
    weights = [np.ones(len(each), np.int64) for each in pairs[:-1]]
    weights.append(np.array(list(before.values()), np.int64))
    pair, inverse = np.unique(np.concatenate(pairs), return_inverse=True)
    count = np.bincount(inverse, np.concatenate(weights), len(pair)).astype(np.int64)
    owner, table = divmod(pair, max(1, len(tables)))
    return list(zip(owner.tolist(), [tables[at] for at in table.tolist()], count.tolist(), strict=True))


def _within(group: Ints) -> Ints:
    """Return for each element its number, from 1 up, in its run of equal values."""
    index = np.arange(len(group))
    begins = np.append(True, group[1:] != group[:-1]) if len(group) else np.zeros(0, np.bool_)
    numbered: Ints = index - np.maximum.accumulate(np.where(begins, index, 0)) + 1
    return numbered
