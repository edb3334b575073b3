"""The reader of XA transactions: their rows stand before XA PREPARE, but are visible to SELECT only after XA COMMIT.

So the events are held at XA PREPARE and become part of the transaction that commits, which is empty in the binlog.
After this module they are rows of the committing transaction, with its GTID and its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from incsnap.binlog import event_classes
from incsnap.binlog.event_classes import Events, classify
from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.protocol.control_events import INFLATED_BLOCK
from incsnap.binlog.protocol.frames import PAD, Block, Longs
from incsnap.binlog.segments import Segment
from incsnap.binlog.transactions import TransactionBuilder
from incsnap.binlog.xa_parts import XaEvents, XaMark, XaTransaction
from incsnap.ddl.xa_statements import is_one_phase, read_xa
from incsnap.errors import BinlogError, shorten


class XaTransactions:
    """The part of StreamReader that reads XA transactions.

    `state` is the reader's builder, and has an open transaction.
    """

    def __init__(self, state: TransactionBuilder, prepared: PreparedTransactions) -> None:
        self._state = state
        self._prepared = prepared

    def statement(self, sql: str, at: int) -> Iterator[Segment]:
        """Read an XA statement (START, END, COMMIT or ROLLBACK), and yield the segments that it causes.

        `at` is the event's first byte in the file. Raise BinlogError if the statement has an unknown form. Raise
        NotPrepared if a COMMIT's XA PREPARE was not read.
        """
        statement = read_xa(sql)
        opened = self._state.open
        where = self._state.place.named(at)
        if statement is None or opened is None:
            raise BinlogError(f"{where}: unknown form of the XA statement {shorten(sql)!r}")
        verb, xid = statement
        gtid = self._state.name_of(opened)
        if verb in ("START", "BEGIN"):
            opened.begun, opened.xid = True, xid
            self._prepared.begin(xid, gtid, self._state.place.file)
        elif verb == "COMMIT":
            transaction = self._prepared.of(xid, gtid, where)
            yield from self._rows(transaction, at)
            self._prepared.finish(transaction)
            yield self._end(transaction, prepared=False)
        elif verb == "ROLLBACK":
            yield self._end(self._prepared.roll_back(xid), prepared=False, rolled_back=True)

    def add(self, events: Events) -> None:
        """Hold a run of events before XA PREPARE. Raise BinlogError if another transaction begins within the run."""
        state = self._state
        for run, table, begin_at in state.runs(events):
            if bool((run.classes > event_classes.ROWS).any()):
                where = state.place.named(int(begin_at[0]))
                raise BinlogError(f"{where}: a transaction begins inside an XA transaction")
            kept = state.kept(run, table)
            passed_over = bool(((run.classes == event_classes.ROWS) & (table < 0)).any())
            self._prepared.add(XaEvents(*run.joined(kept), begin_at[kept]), passed_over=passed_over)

    def prepare(self, body: bytes, at: int) -> Iterator[Segment]:
        """Read the event XA_PREPARE at the byte `at` of the file, and yield the segments that it causes.

        The event prepares the transaction, or commits it in one phase without preparing it. Raise BinlogError if no XA
        transaction is open.
        """
        opened = self._state.open
        if opened is None or not opened.xid:
            raise BinlogError(f"{self._state.place.named(at)}: an XA transaction ends without a beginning")
        if is_one_phase(body):
            transaction = self._prepared.prepare()
            self._prepared.finish(transaction)  # it was never prepared
            yield from self._rows(transaction, at)
            yield self._end(transaction, prepared=False)
        else:
            yield self._end(self._prepared.prepare(), prepared=True)

    def _rows(self, transaction: XaTransaction, at: int) -> Iterator[Segment]:
        """Yield the rows of `transaction` as part of the open transaction.

        Each event keeps its own position in the binlog, because positions distinguish events. Events of one key are in
        order, because the key was locked. Whether a table is included is decided again, because the settings may have
        changed.
        """
        here = self._state.place.file, at
        for events in self._prepared.events(transaction):
            for block, positions in _blocks(events):
                run = replace(classify(block, 0), at=positions)
                for segment in self._state.add_run(run):
                    yield replace(segment, file=transaction.file, visible_at=here)

    def _end(self, transaction: XaTransaction, *, prepared: bool, rolled_back: bool = False) -> Segment:
        """Return the segment that ends the open transaction and marks `transaction` as prepared or ended."""
        return replace(
            self._state.fragment_without_events(ends=True), marks=(XaMark(transaction, prepared, rolled_back),)
        )


def _blocks(events: XaEvents) -> Iterator[tuple[Block, Longs]]:
    """Yield the events in blocks of about 1 MiB, so that the buffer's bound holds."""
    offsets = events.offsets
    begin, count = 0, len(events.positions)
    while begin < count:
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + INFLATED_BLOCK, "right")) - 1)
        places = offsets[begin : end + 1] - offsets[begin]
        data = events.payload[offsets[begin] : offsets[end]] + PAD
        yield Block(data, places[:-1], places[1:]), events.positions[begin:end]
        begin = end
