"""The order of a list of keys, which is about that of an index. Ten million keys must not stop the stream.

Arrow keeps the keys, removes repeated ones and sorts. Other threads run meanwhile. Python's `sorted` holds the
interpreter's lock to its end: 3 seconds for a million keys, in which no change is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import RecordBatch, TextArray

#: Keys whose JSON is parsed at a time: 10 ms, in which no other thread runs.
_PARSED = 5_000
#: Greatest number whose size counts: a DOUBLE holds no greater one.
_MOST = 1e308
_NULL, _NUMBER, _TEXT = 0, 1, 2


def in_order(keys: Iterable[str]) -> TextArray:
    """Return the keys, each once, in about the order of an index: numbers by size, texts by their characters."""
    parts = [pa.array(part, pa.large_string()) for part in _parts(iter(keys))]
    once = pc.unique(pa.chunked_array(parts, pa.large_string()))
    if len(once) < 2:
        return once
    blocks = (once.slice(begin, _PARSED).to_pylist() for begin in range(0, len(once), _PARSED))
    ranks = pa.concat_tables([pa.Table.from_batches([_ranks(block)]) for block in blocks], promote_options="default")
    told_apart = [name for name in ranks.column_names if pc.count_distinct(ranks[name], mode="all").as_py() > 1]
    if not told_apart:
        return once
    return once.take(pc.sort_indices(ranks, sort_keys=[(name, "ascending") for name in told_apart]))


def _parts(keys: Iterator[str]) -> Iterator[list[str]]:
    while part := list(islice(keys, _PARSED)):
        yield part


def _ranks(keys: list[str]) -> RecordBatch:
    """Return three columns for each member of the keys: its kind, its size as a number, and its text."""
    values = [list(key.values()) for key in json.loads(f"[{','.join(keys)}]")]
    columns: dict[str, Any] = {}
    # A key with fewer members than others is refused later.
    for place in range(max(map(len, values))):
        members = [key[place] if place < len(key) else None for key in values]
        columns[f"kind {place}"] = pa.array([_kind(each) for each in members], pa.int8())
        columns[f"number {place}"] = pa.array([_size(each) for each in members], pa.float64())
        columns[f"text {place}"] = pa.array(
            [each if isinstance(each, str) else None for each in members], pa.large_string()
        )
    return pa.RecordBatch.from_pydict(columns)


def _kind(value: Any) -> int:
    return _NULL if value is None else _TEXT if isinstance(value, str) else _NUMBER


def _size(value: Any) -> float | None:
    return None if value is None or isinstance(value, str) else float(max(-_MOST, min(_MOST, value)))
