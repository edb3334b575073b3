"""A test that the columns of a comparison choose the same keys as the rule of `gap_rules` that the model proves."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incsnap.columns.hashing import hash64
from incsnap.verify.gap_matching import CodedRecords, CodedRows, codes_of, differing
from incsnap.verify.gap_rules import needs_repair
from incsnap.verify.proof import LastRecord
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE, UNREADABLE

_SEAM = 6
_TOPIC = "orders"
_HASH_SEED = 7


def coded_rows(rows: dict[int, bytes]) -> CodedRows:
    codes = hash64(pa.array(list(rows.values()), pa.binary()), _HASH_SEED).view(np.int64)
    return CodedRows(np.array(list(rows), np.uint64), codes)


def coded_records(lines: list[tuple[int, int, int, int, bytes | None]], *, tombstones: bool) -> CodedRecords:
    """Return the records: partition, offset, key, state and row of each, in the order of partitions and offsets."""
    partition, offset, key, state, row = zip(*lines, strict=True) if lines else ((),) * 5
    codes = codes_of(pa.array(state, pa.int8()), pa.array(row, pa.binary()), tombstones=tombstones, seed=_HASH_SEED)
    is_new = np.array(offset, np.int64) >= _SEAM
    return CodedRecords(np.array(key, np.uint64), codes, np.array(partition, np.int32), is_new)


@pytest.mark.parametrize("tombstones", [True, False])
def test_the_columns_choose_the_keys_that_the_rule_chooses(tombstones: bool) -> None:
    random_ = random.Random(5)
    rows: dict[int, bytes] = {}
    lines: list[tuple[Any, ...]] = []
    expected: set[tuple[int, bool]] = set()
    for key in range(600):
        row = random_.choice([None, b"x", b"y"])
        if row is not None:
            rows[key] = row
        last: dict[int, LastRecord] = {}
        offset = 0
        for _ in range(random_.randint(0, 4)):
            offset += random_.randint(1, 2)
            partition = int(random_.random() < 0.2)
            state = random_.choice([ROW, ROW, DELETION, TOMBSTONE, UNREADABLE])
            shown = random_.choice([b"x", b"y"]) if state == ROW else None
            lines.append((partition, offset, key, state, shown))
            is_gone = state == TOMBSTONE or (state == DELETION and not tombstones)
            last[partition] = LastRecord(b"?" if state == UNREADABLE else shown, partition, offset, is_gone)
        if needs_repair((_TOPIC, b"%d" % key), row, list(last.values()), {(_TOPIC, 0): _SEAM, (_TOPIC, 1): _SEAM}):
            expected.add((key, row is None))
    lines.sort(key=lambda line: line[:2])
    columns, records = coded_rows(rows), coded_records(lines, tombstones=tombstones)

    again, extra = differing(columns, records)

    chosen = [*((int(columns.key[at]), False) for at in again), *((int(records.key[at]), True) for at in extra)]
    assert len(chosen) == len(set(chosen))
    assert set(chosen) == expected
    assert 100 < len(chosen) < 600


def test_a_side_without_keys_has_no_right_row_and_no_deletion() -> None:
    rows, records = coded_rows({1: b"x"}), coded_records([(0, 1, 2, ROW, b"y")], tombstones=True)
    nothing = coded_rows({}), coded_records([], tombstones=True)

    assert [each.tolist() for each in differing(rows, nothing[1])] == [[0], []]
    assert [each.tolist() for each in differing(nothing[0], records)] == [[], [0]]
    assert [each.tolist() for each in differing(*nothing)] == [[], []]


def test_a_key_with_two_rows_is_sent_again() -> None:
    rows = CodedRows(np.array([4, 4], np.uint64), coded_rows({1: b"x", 2: b"y"}).code)
    records = coded_records([(0, 1, 4, ROW, b"y")], tombstones=True)

    assert sorted(differing(rows, records)[0].tolist()) == [0, 1]
