"""The cutting of a stretch of the stream into slices: segments are joined, and divided where a new task begins."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from incsnap.binlog.segments import IdTable, Map, Stretch, note_maps
from incsnap.binlog.slices import IN_SLICE, Slice, SliceTransactions
from incsnap.tables import TableId


def cut_slices(
    stretches: Sequence[Stretch], ids: IdTable, parts: int, only: TableId | None = None, *, whole: bool = False
) -> list[Slice]:
    """Return the events of consecutive stretches as at most `parts` slices of about equal size in bytes.

    `only` limits the slices to one table. Slices begin at a transaction. Inside a transaction they begin only if it is
    larger than a slice should be, and never if `whole`. The result depends on the range alone, not on how the stream
    was divided into segments.
    """
    numbers = None if only is None else ids.numbers_of(only)
    chosen = [_Chosen(stretch, numbers) for stretch in stretches]
    chosen = [each for each in chosen if len(each.events)]
    if not chosen:
        return []
    joined = _joined(chosen, ids)
    borders = _borders(joined, parts, inside=not whole)
    maps = _maps_in_force(stretches[0], chosen[0], ids, numbers)
    return [_part(joined, begin, end, maps) for begin, end in pairwise(borders)]


def last_transaction(whole: Slice) -> Slice:
    """Return the events of the slice's last transaction as a slice, for counting the rows of a transaction that the
    next batch continues."""
    return _part(whole, int(whole.transactions.first_events[-1]), len(whole), {})


def _maps_in_force(start: Stretch, first: _Chosen, ids: IdTable, only: frozenset[int] | None) -> dict[int, Map]:
    """Return the table maps from before the range that its first event may refer to.

    There are none if the range begins at the beginning of a transaction.
    """
    _, segment, fragment, begin, _ = start
    began, same = (segment, fragment), (first.segment, int(first.fragments[0]))
    inside = segment.rows_of_fragment_before(fragment, begin) > 0 and ids.gtid(*began) == ids.gtid(*same)
    maps = segment.maps_of_fragment(fragment, begin) if inside else {}
    if only is None:
        return maps
    return {key: each for key, each in maps.items() if not each.is_query and ids.table(each.event[25:]) in only}


class _Chosen:
    """The events of a stretch that go into slices."""

    def __init__(self, stretch: Stretch, only: frozenset[int] | None) -> None:
        _, segment, _, begin, end = stretch
        self.segment = segment
        self.events = np.arange(begin, end)
        if only is not None:
            self.events = self.events[np.isin(segment.tables[begin:end], list(only))]
            borders = zip(segment.offsets[self.events].tolist(), segment.offsets[self.events + 1].tolist(), strict=True)
            self.payload = b"".join([segment.payload[a:b] for a, b in borders])
        else:
            self.payload = segment.payload[segment.offsets[begin] : segment.offsets[end]]
        self.sizes = segment.offsets[self.events + 1] - segment.offsets[self.events]
        # The fragment of each event; `firsts` are the first events of fragments, where transactions begin.
        fragment = np.searchsorted(segment.first, self.events, "right") - 1
        self.firsts = np.flatnonzero(np.diff(fragment, prepend=-1))
        self.fragments = fragment[self.firsts]


def _joined(chosen: list[_Chosen], ids: IdTable) -> Slice:
    """Return the whole range as one slice, in which a transaction's fragments are one again."""
    files: dict[str, int] = {}
    counted = 0
    parts: list[npt.NDArray[np.void]] = []
    for each in chosen:
        part = np.empty(len(each.fragments), IN_SLICE)
        part["event"] = counted + each.firsts
        part["file"] = files.setdefault(each.segment.file, len(files))
        shown = each.segment.visible_at
        part["gtid_file"] = files.setdefault(shown[0], len(files)) if shown else part["file"]
        part["transaction"] = each.segment.transactions.take(each.fragments)
        parts.append(part)
        counted += len(each.events)
    records = np.concatenate(parts)
    number, source = (records["transaction"][name] for name in ("number", "source"))
    begins = np.append(True, (np.diff(number) != 0) | (np.diff(source) != 0))
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.concatenate([each.sizes for each in chosen]))))
    return Slice(
        b"".join([each.payload for each in chosen]),
        offsets,
        np.concatenate([each.segment.positions[each.events] for each in chosen]),
        np.concatenate([each.segment.kinds[each.events] for each in chosen]),
        SliceTransactions(records.compress(begins), tuple(ids.sources), tuple(files)),
    )


def _borders(whole: Slice, parts: int, *, inside: bool) -> list[int]:
    """Return the events at which parts begin, and the end.

    The ideal borders divide the bytes evenly. Each moves to the nearest end of a transaction. In a transaction larger
    than a part, the border moves to the next end of a rows event.
    """
    total = int(whole.offsets[-1])
    target = max(1, total // max(1, parts))
    begins = np.append(whole.transactions.first_events, len(whole))
    begin_bytes = whole.offsets[begins]
    rows = np.flatnonzero(whole.is_rows)
    borders = {0, len(whole)}
    for nth in range(1, parts):
        ideal = total * nth // parts
        following = int(np.searchsorted(begin_bytes, ideal))
        before, after = int(begin_bytes[following - 1]), int(begin_bytes[following])
        if inside and after - before > target and before < ideal < after:
            row = int(np.searchsorted(whole.offsets[rows + 1], ideal))
            borders.add(int(rows[row]) + 1 if row < len(rows) else len(whole))
        else:
            borders.add(int(begins[following if after - ideal <= ideal - before else following - 1]))
    return sorted(borders)


def _part(whole: Slice, begin: int, end: int, first_maps: dict[int, Map]) -> Slice:
    """Return the events `begin` to `end` as a slice, with the table maps in force repeated at its beginning.

    `first_maps` are the maps in force at the beginning of `whole`.
    """
    first_events = whole.transactions.first_events
    nth = int(np.searchsorted(first_events, begin, "right")) - 1
    last = int(np.searchsorted(first_events, end, "left"))
    own_first = int(first_events[nth])
    maps = dict(first_maps) if nth == 0 else {}
    for event in (own_first + np.flatnonzero(~whole.is_rows[own_first:begin])).tolist():
        note_maps(maps, [_map_at(whole, event)])
    repeated = list(maps.values())
    head = b"".join([each.event for each in repeated])
    sizes = np.array([0, *(len(each.event) for each in repeated)], np.int64)
    offsets = whole.offsets[begin : end + 1] - whole.offsets[begin] + len(head)
    # The first transaction may have begun earlier. The repeated maps are part of it here.
    moved = first_events[nth:last] - begin + len(repeated)
    moved[0] = 0
    return Slice(
        head + whole.payload[whole.offsets[begin] : whole.offsets[end]],
        np.concatenate((np.cumsum(sizes)[:-1], offsets)),
        np.concatenate((np.array([each.pos for each in repeated], np.int64), whole.positions[begin:end])),
        np.concatenate((np.array([each.event[4] for each in repeated], np.uint8), whole.kinds[begin:end])),
        whole.transactions.between(nth, last, moved),
        whole.definitions,
    )


def _map_at(whole: Slice, event: int) -> Map:
    return Map(whole.payload[whole.offsets[event] : whole.offsets[event + 1]], int(whole.positions[event]))
