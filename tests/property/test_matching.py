"""Tests of the comparison of hashed sides against a slow one, key by key, and with wrong rules."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from incsnap.verify import matching
from incsnap.verify.matching import HashedRecords, HashedRows, match
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE, UNREADABLE

_RUNS = 400
_COLUMNS = ("key", "row", "partition", "time", "state", "is_snapshot", "file", "pos", "row_number")
Record = tuple[Any, ...]


def sides(chance: random.Random) -> tuple[list[tuple[int, int]], list[Record]]:
    """Return rows, and records in the order of partitions and offsets."""
    keys = range(chance.randrange(1, 12))
    rows = [(key, chance.randrange(1, 3)) for key in keys if chance.random() < 0.7]
    rows += [each for each in rows if chance.random() < 0.05]
    records = []
    for partition in range(chance.randrange(1, 4)):
        for _ in range(chance.randrange(12)):
            state = chance.choice((ROW, ROW, ROW, DELETION, TOMBSTONE, UNREADABLE))
            row = chance.randrange(1, 3) if state == ROW else 0
            is_read, has_place = chance.random() < 0.3, state != TOMBSTONE and chance.random() < 0.9
            place = (chance.randrange(2), chance.randrange(3), chance.randrange(2)) if has_place else (-1, -1, -1)
            records.append((chance.choice(keys), row, partition, chance.randrange(4), state, is_read, *place))
    chance.shuffle(rows)
    return rows, records


def matched(rows: list[tuple[int, int]], records: list[Record], *, tombstones: bool) -> tuple[Any, ...]:
    """Return what `match` finds: keys of the table, keys of the topic alone, and counts of repeating keys."""
    of_rows = np.array(rows, np.uint64).reshape(-1, 2)
    columns = zip(*records, strict=True) if records else [()] * len(_COLUMNS)
    named = {
        name: np.array(column, np.uint64 if name in ("key", "row") else np.int64)
        for name, column in zip(_COLUMNS, columns, strict=True)
    }
    named["is_snapshot"] = named["is_snapshot"].astype(np.bool_)
    result = match(HashedRows(of_rows[:, 0], of_rows[:, 1]), HashedRecords(**named), tombstones=tombstones)
    repeating = zip(result.repeating.tolist(), result.twice.tolist(), result.back.tolist(), strict=True)
    return (
        {rows[at][0] for at in result.rows.tolist()},
        {records[at][0] for at in result.records.tolist()},
        {records[at][0]: counts for at, *counts in repeating},
    )


def slowly_found(rows: list[tuple[int, int]], records: list[Record], *, tombstones: bool) -> tuple[Any, ...]:
    """Return what `found` returns, key by key."""
    differ, extra, repeating = set(), set(), {}
    for key in {each[0] for each in (*rows, *records)}:
        own = [dict(zip(_COLUMNS, each, strict=True)) for each in records if each[0] == key]
        lasts = {each["partition"]: each for each in own}
        last = max(lasts.values(), key=lambda each: (each["time"], each["partition"]), default=None)
        shown = [row for other, row in rows if other == key]
        is_gone = last is None or last["state"] == TOMBSTONE or (not tombstones and last["state"] == DELETION)
        if not shown and not is_gone:
            extra.add(key)
        if shown and (len(shown) > 1 or last is None or last["state"] != ROW or last["row"] != shown[0]):
            differ.add(key)
        twice = back = 0
        for partition in lasts:
            events = [each for each in own if each["partition"] == partition and each["file"] >= 0]
            events = [each for each in events if not each["is_snapshot"]]
            for number, event in enumerate(events):
                before = events[:number]
                twice += any(_facts(each) == _facts(event) for each in before)
                back += any((event["file"], event["pos"]) < (each["file"], each["pos"]) for each in before)
        if twice or back:
            repeating[key] = [twice, back]
    return differ, extra, repeating


def _facts(record: dict[str, Any]) -> list[Any]:
    return [record[name] for name in ("state", "row", "file", "pos", "row_number")]


def is_right(seed: int) -> bool:
    chance = random.Random(seed)
    rows, records = sides(chance)
    tombstones = chance.random() < 0.5
    return matched(rows, records, tombstones=tombstones) == slowly_found(rows, records, tombstones=tombstones)


def test_the_comparison_finds_what_a_slow_one_finds() -> None:
    assert all(is_right(seed) for seed in range(5 * _RUNS))


def _newest_time(records: HashedRecords, order: Any) -> Any:
    by_time = order[np.lexsort((records.time[order], records.key[order]))]
    key = records.key[by_time]
    return by_time[np.append(key[1:] != key[:-1], True)] if len(by_time) else by_time


def _greatest_partition(records: HashedRecords, order: Any) -> Any:
    key = records.key[order]
    return order[np.append(key[1:] != key[:-1], True)] if len(order) else order


def _without(name: str) -> Callable[..., Any]:
    repetitions = matching._repetitions

    def wrong(records: HashedRecords, order: Any) -> Any:
        changed = {each: getattr(records, each) for each in _COLUMNS}
        changed[name] = np.zeros_like(changed[name])
        return repetitions(HashedRecords(**changed), order)

    return wrong


MUTANTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "the newest time counts": ("_last_records", _newest_time),
    "the greatest partition counts": ("_last_records", _greatest_partition),
    **{f"repetitions without {name}": ("_repetitions", _without(name)) for name in
       ("row", "partition", "state", "is_snapshot", "pos", "row_number", "file")},
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_caught(name: str) -> None:
    function, wrong = MUTANTS[name]
    with patch.object(matching, function, wrong):
        assert not all(is_right(seed) for seed in range(_RUNS))


def test_a_row_whose_key_is_there_twice_is_always_looked_at_again() -> None:
    record = (1, 5, 0, 0, ROW, True, -1, -1, -1)

    assert matched([(1, 5), (1, 5)], [record], tombstones=True)[0] == {1}
