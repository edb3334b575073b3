"""The number of each record in its transaction, over all tables and among those of its table.

Counted as Debezium counts: every record that has a value, so two for an update that moves a row to another key, none
for a tombstone, none for a skipped operation. Pure NumPy over all records of a slice; nothing is done one by one but
what there is one of per table.

A slice holds whole transactions, but for one that was begun in an earlier batch or goes on in the next. What was
counted of that one (``OpenCounts``) is in the offset.
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
    """Records that have a value: of table ``table``, in binlog order; their events, and the transactions these are of,
    both as indexes into a slice."""

    table: str
    event: Ints
    owner: Ints


@dataclass(frozen=True, slots=True, eq=False)
class TransactionTotals:
    """By transaction: how many records each table has (those of earlier batches included). Sorted by transaction, then
    by table's name."""

    owner: Ints
    table: Sequence[str]
    count: Ints


def number(counted: Sequence[Counted], begun: OpenCounts | None) -> list[TransactionOrder]:
    """``begun``: what was counted of the slice's first transaction before, if that one continues. All records of an
    event are in one element of ``counted``."""
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


def totals(counted: Sequence[Counted], begun: OpenCounts | None) -> TransactionTotals:
    """How many records each transaction has by table; ``begun`` as in ``number``."""
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
    return TransactionTotals(owner, [tables[at] for at in table.tolist()], count)


def _within(group: Ints) -> Ints:
    """Counts from one up in each run of equal numbers."""
    index = np.arange(len(group))
    begins = np.append(True, group[1:] != group[:-1]) if len(group) else np.zeros(0, np.bool_)
    numbered: Ints = index - np.maximum.accumulate(np.where(begins, index, 0)) + 1
    return numbered
