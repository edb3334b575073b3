"""A test of record numbers in transactions: they do not depend on how a stream is cut into batches and blocks."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from incsnap.snapshot.offset import OpenCounts
from incsnap.tasks.numbering import Counted, number, totals

#: (transaction, table, records that have a value) of each event, in binlog order.
Event = tuple[int, str, int]

_TRANSACTION = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=8)


@st.composite
def _streams(draw: st.DrawFn) -> tuple[list[Event], list[int]]:
    """Draw events, and the ends of batches."""
    events = [
        (nth, table, count)
        for nth, transaction in enumerate(draw(st.lists(_TRANSACTION, min_size=1, max_size=6)))
        for table, count in transaction
    ]
    return events, sorted(draw(st.sets(st.integers(1, len(events)), max_size=4)))


def _counted_one_by_one(events: list[Event]) -> list[tuple[int, str, int, int]]:
    of_all: Counter[int] = Counter()
    of_table: Counter[tuple[int, str]] = Counter()
    numbered = []
    for transaction, table, count in events:
        for _ in range(count):
            of_all[transaction] += 1
            of_table[transaction, table] += 1
            numbered.append((transaction, table, of_all[transaction], of_table[transaction, table]))
    return numbered


def _blocks(events: list[Event], first: int, cut: int) -> list[Counted]:
    """Return each table's events in blocks of `cut`, by table. Events are numbered within the slice."""
    blocks = []
    for table in sorted({table for _, table, _ in events}):
        own = [(nth, each) for nth, each in enumerate(events) if each[1] == table]
        for begin in range(0, len(own), cut):
            some = own[begin : begin + cut]
            counts = [each[2] for _, each in some]
            event = np.repeat([nth for nth, _ in some], counts).astype(np.int64)
            owner = np.repeat([each[0] - first for _, each in some], counts).astype(np.int64)
            blocks.append(Counted(table, event, owner))
    return blocks


@given(_streams(), st.integers(1, 5), st.booleans())
def test_numbers_do_not_depend_on_the_cuts(stream: tuple[list[Event], list[int]], cut: int, sliced: bool) -> None:
    events, ends = stream
    numbers: list[tuple[int, str, int, int]] = []
    sums: dict[int, dict[str, int]] = {}
    carried: OpenCounts | None = None
    for begin, end in zip([0, *ends], [*ends, len(events)], strict=True):
        batch = events[begin:end]
        slices = [list(some) for _, some in groupby(batch, lambda each: each[0])] if sliced else [batch] * bool(batch)
        goes_on = 0 < begin < len(events) and events[begin - 1][0] == events[begin][0]
        for nth, slice_ in enumerate(slices):
            first = slice_[0][0]
            begun = carried if nth == 0 and goes_on else None
            blocks = _blocks(slice_, first, cut)
            for block, order in zip(blocks, number(blocks, begun), strict=True):
                rows = zip(block.owner.tolist(), order.total.tolist(), order.of_table.tolist(), strict=True)
                numbers += [(first + owner, block.table, total, of_table) for owner, total, of_table in rows]
            of_slice: dict[int, dict[str, int]] = {}
            for owner, table, count in totals(blocks, begun):
                of_slice.setdefault(first + owner, {})[table] = count
            sums |= of_slice
            carried = OpenCounts(0, tuple(of_slice.get(slice_[-1][0], {}).items()))
    expected = _counted_one_by_one(events)
    assert sorted(numbers) == sorted(expected)
    of_transactions: dict[int, Counter[str]] = {}
    for transaction, table, _, _ in expected:
        of_transactions.setdefault(transaction, Counter())[table] += 1
    assert sums == {transaction: dict(counts) for transaction, counts in of_transactions.items()}
