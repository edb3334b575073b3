"""The tail without its thread and its socket. Tests feed bytes by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from incsnap.binlog.buffer import Buffer
from incsnap.binlog.buffer_position import Cut
from incsnap.binlog.capture_options import CaptureOptions
from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.protocol.frames import Framer
from incsnap.binlog.segments import IdTable
from incsnap.binlog.slices import Slice
from incsnap.binlog.slicing import cut_slices
from incsnap.binlog.stream_reader import StreamReader
from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.tables import TableId
from tests.support.binlog_bytes import BEGIN, XID, Binlog

START = StreamPosition(GtidSet(), "binlog.000001", 4)


def of_shop(table: TableId) -> bool:
    """Whether the table is in the database `shop` and its name does not begin with x."""
    return table.database == "shop" and not table.table.startswith("x")


class Stream:
    """The parts of a tail: framer, reader and buffer."""

    def __init__(
        self,
        start: StreamPosition = START,
        included: Callable[[TableId], bool] = of_shop,
        *,
        checksum: bool = True,
        queries: bool = False,
        ends_batch: Callable[[SchemaChange], bool] = lambda _: False,
        prepared: PreparedTransactions | None = None,
    ) -> None:
        self.ids = IdTable(included)
        options = CaptureOptions(queries=queries, ends_batch=ends_batch)
        self.prepared = prepared or PreparedTransactions()
        self.reader = StreamReader(start, self.ids, options=options, prepared=self.prepared)
        self.buffer = Buffer(start, self.ids, options)
        self.connect(checksum=checksum, server_uuid=start.server_uuid)

    def connect(self, *, checksum: bool = True, server_uuid: str = "") -> None:
        """Begin a new connection to the server."""
        self.framer = Framer()
        if self.reader.position.server_uuid not in ("", server_uuid):
            self.buffer.drop_open()
        self.reader.stream_begins(checksum=checksum, server_uuid=server_uuid)
        self.buffer.newest = self.reader.position

    def feed(self, chunks: Iterable[bytes]) -> Stream:
        """Take bytes from the server."""
        for chunk in chunks:
            for block in self.framer.feed(chunk):
                for segment in self.reader.add(block):
                    self.buffer.append(segment)
                self.buffer.newest = self.reader.position
        return self

    def cut(
        self, start: StreamPosition, max_bytes: int = 1 << 40, max_rows: int | None = None, *, inside: bool = False
    ) -> tuple[StreamPosition, Cut]:
        """Cut a batch that begins at `start`. Return the position of its end, and the cut."""
        place = self.buffer.place_of(start)
        assert place is not None
        cut = self.buffer.cut(place, max_bytes, max_rows, inside=inside)
        end = self.buffer.position_of(start, cut)
        self.buffer.remember(end, cut.end)
        return end, cut

    def slices(self, start: StreamPosition, end: StreamPosition, parts: int = 1) -> list[Slice]:
        """Return the slices between two positions."""
        first, last = self.buffer.place_of(start), self.buffer.place_of(end)
        assert first is not None
        assert last is not None
        return cut_slices(self.buffer.stretches(first, last), self.ids, parts)


class SliceTransaction(NamedTuple):
    """A transaction with events in a slice."""

    event: int  #: index of its first event in the slice
    gtid: str  #: GTID as MySQL writes it
    server_id: int  #: server that first ran the transaction
    thread: int | None  #: id of the connection; None if the log does not have it
    ts_us: int  #: original commit time, in µs since 1970
    file: str  #: binlog file of its events
    pos: int  #: position of its GTID event, in 64 bits


def transactions_of(one: Slice) -> list[SliceTransaction]:
    """Return the transactions of a slice."""
    owned = one.transactions
    return [
        SliceTransaction(event, gtid, server, None if thread < 0 else thread, ts_us, owned.files[file], pos)
        for gtid, (event, file, _, (_, _, server, thread, ts_us, pos)) in zip(
            owned.gtids(), owned.records.tolist(), strict=True
        )
    ]


def contents_of(slices: Iterable[Slice]) -> list[tuple[bytes, list[int], list[int], list[SliceTransaction]]]:
    """Return everything in the slices as values that can be compared."""
    return [(one.payload, one.offsets.tolist(), one.positions.tolist(), transactions_of(one)) for one in slices]


def rows_of(slices: Iterable[Slice]) -> list[tuple[str, int, bytes, bytes]]:
    """Return GTID, position, body of the table map, and body of each rows event.

    Assert that each event has its table map and its transaction.
    """
    rows = []
    for one in slices:
        assert int(one.offsets[-1]) == len(one.payload)
        assert len(one.offsets) == len(one) + 1
        ids, is_rows = one.table_ids().tolist(), one.is_rows.tolist()
        named = transactions_of(one)
        owners = one.transaction_of(np.arange(len(one))).tolist()
        maps: dict[int, bytes] = {}
        for nth in range(len(one)):
            body = one.payload[one.offsets[nth] + 19 : one.offsets[nth + 1]]
            if is_rows[nth]:
                owner = named[owners[nth]]
                assert owner.event <= nth
                rows.append((owner.gtid, int(one.positions[nth]), maps[ids[nth]], body))
            else:
                maps[ids[nth]] = body
    return rows


def slice_of(*transactions: Sequence[tuple[int, bytes]]) -> Slice:
    """Return one slice with all transactions. Each gets a BEGIN and an end."""
    log = Binlog()
    for events in transactions:
        log.add([BEGIN, *events, XID])
    stream = Stream().feed(log.dump(GtidSet()))
    [whole] = stream.slices(START, stream.cut(START)[0])
    return whole
