"""A slice: a range of the stream as it travels to a task. Bytes and columns, no object per event or transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from incsnap.binlog.control_events import HEADER, ROWS_QUERY, gtid_text, read_rows_query
from incsnap.binlog.frames import PAD, Longs, gather
from incsnap.binlog.segments import IS_ROWS, Map, Names, Segment, note_maps
from incsnap.gtid import Source

_TABLE_ID = np.dtype("<u8")


class SliceTransaction(NamedTuple):
    """A transaction with events in a slice. ``offset``: its first byte in the payload; ``ts_us``: original commit, µs;
    ``thread``: None where the log does not say; ``pos``: 64-bit position of its GTID event."""

    offset: int
    gtid: str
    server_id: int
    thread: int | None
    ts_us: int
    file: str
    pos: int


@dataclass(frozen=True, slots=True, eq=False)
class SliceTransactions:
    """The transactions of a slice as columns, one entry each; iterating makes ``SliceTransaction`` of them."""

    #: First event of the transaction in the slice.
    event: Longs
    offset: Longs
    sources: tuple[Source, ...]
    source: npt.NDArray[np.int32]
    number: Longs
    server_id: Longs
    #: -1 where the log does not say.
    thread: Longs
    ts_us: Longs
    files: tuple[str, ...]
    file: npt.NDArray[np.int32]
    pos: Longs

    def __len__(self) -> int:
        return len(self.event)

    def __iter__(self) -> Iterator[SliceTransaction]:
        columns = (self.offset, self.server_id, self.thread, self.ts_us, self.file, self.pos)
        for gtid, offset, server, thread, ts_us, file, pos in zip(
            self.gtids(), *(column.tolist() for column in columns), strict=True
        ):
            yield SliceTransaction(offset, gtid, server, None if thread < 0 else thread, ts_us, self.files[file], pos)

    def gtids(self) -> list[str]:
        """The transactions' names as MySQL writes them."""
        named = [gtid_text(source, 0)[:-1] for source in self.sources]
        return [named[s] + str(n) for s, n in zip(self.source.tolist(), self.number.tolist(), strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Whole TABLE_MAP and rows events of included tables in binlog order: 19-byte header and body, no checksum.

    Event i is ``payload[offsets[i]:offsets[i + 1]]`` and begins at ``positions[i]`` (64 bits) of its file; events of a
    compressed transaction have the position of the event around them. A slice that begins inside a transaction begins
    with the table maps still in force. The length in a header may count a checksum that is not there.
    """

    payload: bytes
    offsets: Longs
    positions: Longs
    kinds: npt.NDArray[np.uint8]
    transactions: SliceTransactions

    def __len__(self) -> int:
        """Events, table maps included."""
        return len(self.kinds)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Slice)
            and self.payload == other.payload
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.positions, other.positions)
            and list(self.transactions) == list(other.transactions)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_rows(self) -> npt.NDArray[np.bool_]:
        """True for rows events, False for table maps and texts of statements."""
        found: npt.NDArray[np.bool_] = IS_ROWS[self.kinds]
        return found

    def table_ids(self) -> Longs:
        """Each event's table id: a rows event belongs to the last map before it of the same id. -1 for a text."""
        ids = gather(self.payload + PAD, _TABLE_ID, self.offsets[:-1] + HEADER)
        return np.where(self.kinds == ROWS_QUERY, -1, (ids & np.uint64((1 << 48) - 1)).astype(np.int64))

    def texts(self) -> list[bytes]:
        """The statements in here, where they are kept."""
        at = np.flatnonzero(self.kinds == ROWS_QUERY)
        places = zip((self.offsets[at] + HEADER).tolist(), self.offsets[at + 1].tolist(), strict=True)
        return [read_rows_query(self.payload[begin:end]) for begin, end in places]

    def text_of(self, events: Longs) -> Longs:
        """The index into ``texts`` of each of those events; -1: none is known."""
        at = np.flatnonzero(self.kinds == ROWS_QUERY)
        if not len(at):
            return np.full(len(events), -1)
        nth = np.searchsorted(at, events) - 1
        own = self.transaction_of(at)[np.maximum(nth, 0)] == self.transaction_of(events)
        return np.where(own, nth, -1)

    def last_transaction(self) -> Slice:
        """What is in here of the last transaction."""
        return _part(self, int(self.transactions.event[-1]), len(self), {})

    def place(self, event: int) -> str:
        """Binlog file and position of an event, for messages."""
        owner = int(np.searchsorted(self.transactions.event, event, "right")) - 1
        file = self.transactions.files[self.transactions.file[max(owner, 0)]]
        return f"{file}:{int(self.positions[event])}"

    def transaction_of(self, events: Longs) -> Longs:
        """The index into ``transactions`` of each of those events."""
        return np.searchsorted(self.transactions.event, events, "right") - 1


class Extent(NamedTuple):
    """Kept events ``begin`` to ``end`` of a segment, which lie in pieces ``piece`` and following."""

    segment: Segment
    piece: int
    begin: int
    end: int


def cut_slices(
    extents: Sequence[Extent], names: Names, parts: int, only: int | None = None, *, whole: bool = False
) -> list[Slice]:
    """At most ``parts`` slices of about equal bytes; ``only``: the events of one table.

    They are cut between transactions; inside one only where it is larger than a slice is meant to be, and not even
    there if they are to be ``whole``. What comes out depends on the range alone, never on how the stream was cut into
    segments.
    """
    chosen = [_Chosen(extent, only) for extent in extents]
    chosen = [each for each in chosen if len(each.events)]
    if not chosen:
        return []
    joined = _joined(chosen, names)
    borders = _borders(joined, parts, inside=not whole)
    maps = _maps_in_force(extents[0], chosen[0], names, only)
    return [_part(joined, begin, end, maps) for begin, end in pairwise(borders)]


def _maps_in_force(extent: Extent, first: _Chosen, names: Names, only: int | None) -> dict[int, Map]:
    """What the first event may refer to from before the range, which began inside the same transaction."""
    segment, piece, begin, _ = extent
    began, same = (segment, piece), (first.segment, int(first.pieces[0]))
    inside = segment.rows_of_piece_before(piece, begin) > 0 and names.gtid(*began) == names.gtid(*same)
    maps = segment.maps_of_piece(piece, begin) if inside else {}
    if only is None:
        return maps
    return {key: found for key, found in maps.items() if not found.is_query and names.table(found.event[25:]) == only}


class _Chosen:
    def __init__(self, extent: Extent, only: int | None) -> None:
        segment, _, begin, end = extent
        self.segment = segment
        self.events = np.arange(begin, end)
        if only is not None:
            self.events = self.events[segment.tables[begin:end] == only]
            pieces = zip(segment.offsets[self.events].tolist(), segment.offsets[self.events + 1].tolist(), strict=True)
            self.payload = b"".join([segment.payload[a:b] for a, b in pieces])
        else:
            self.payload = segment.payload[segment.offsets[begin] : segment.offsets[end]]
        self.sizes = segment.offsets[self.events + 1] - segment.offsets[self.events]
        # The piece of each event, and of these the first of each piece: the beginnings of transactions.
        piece = np.searchsorted(segment.first, self.events, "right") - 1
        self.firsts = np.flatnonzero(np.diff(piece, prepend=-1))
        self.pieces = piece[self.firsts]


def _joined(chosen: list[_Chosen], names: Names) -> Slice:
    """All of the range as one slice, a transaction's pieces made one again."""
    files: dict[str, int] = {}
    counted = 0
    columns: list[tuple[npt.NDArray[np.int64], ...]] = []
    for each in chosen:
        segment, pieces = each.segment, each.pieces
        file = files.setdefault(segment.file, len(files))
        columns.append(
            (
                counted + each.firsts,
                segment.source[pieces].astype(np.int64),
                segment.number[pieces],
                segment.server[pieces],
                segment.thread[pieces],
                segment.ts_us[pieces],
                np.full(len(pieces), file),
                segment.pos[pieces],
            )
        )
        counted += len(each.events)
    event, source, number, server, thread, ts_us, in_file, pos = (
        np.concatenate(parts) for parts in zip(*columns, strict=True)
    )
    new = np.append(True, (np.diff(number) != 0) | (np.diff(source) != 0))
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.concatenate([each.sizes for each in chosen]))))
    transactions = SliceTransactions(
        event[new], offsets[event[new]], tuple(names.sources), source[new].astype(np.int32), number[new],
        server[new], thread[new], ts_us[new], tuple(files), in_file[new].astype(np.int32), pos[new],
    )  # fmt: skip
    return Slice(
        b"".join([each.payload for each in chosen]),
        offsets,
        np.concatenate([each.segment.positions[each.events] for each in chosen]),
        np.concatenate([each.segment.kinds[each.events] for each in chosen]),
        transactions,
    )


def _borders(whole: Slice, parts: int, *, inside: bool) -> list[int]:
    """The events at which parts begin, and the end. For each ideal border the nearest end of a transaction, or, inside
    a transaction larger than a part, the first end of a rows event behind it."""
    total = int(whole.offsets[-1])
    target = max(1, total // max(1, parts))
    begins = np.append(whole.transactions.event, len(whole))
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
    transactions = whole.transactions
    nth = int(np.searchsorted(transactions.event, begin, "right")) - 1
    last = int(np.searchsorted(transactions.event, end, "left"))
    own_first = int(transactions.event[nth])
    maps = dict(first_maps) if nth == 0 else {}
    inside = begin > own_first or bool(maps)
    if begin > own_first:
        for found in (own_first + np.flatnonzero(~whole.is_rows[own_first:begin])).tolist():
            note_maps(maps, [_map_at(whole, found)])
    repeated = list(maps.values()) if inside else []
    head = b"".join([each.event for each in repeated])
    sizes = np.array([0, *(len(each.event) for each in repeated)], np.int64)
    offsets = np.concatenate((np.cumsum(sizes)[:-1], whole.offsets[begin : end + 1] - whole.offsets[begin] + len(head)))
    event: Longs = transactions.event[nth:last] - begin + len(repeated)
    event[0] = 0
    chosen = slice(nth, last)
    return Slice(
        head + whole.payload[whole.offsets[begin] : whole.offsets[end]],
        offsets,
        np.concatenate((np.array([each.pos for each in repeated], np.int64), whole.positions[begin:end])),
        np.concatenate((np.array([each.event[4] for each in repeated], np.uint8), whole.kinds[begin:end])),
        SliceTransactions(
            event, offsets[event], transactions.sources, transactions.source[chosen], transactions.number[chosen],
            transactions.server_id[chosen], transactions.thread[chosen], transactions.ts_us[chosen],
            transactions.files, transactions.file[chosen], transactions.pos[chosen],
        ),
    )  # fmt: skip


def _map_at(whole: Slice, event: int) -> Map:
    return Map(whole.payload[whole.offsets[event] : whole.offsets[event + 1]], int(whole.positions[event]))
