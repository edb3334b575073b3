"""XA transactions as the log has them: their rows at XA PREPARE, visible to SELECT only from XA COMMIT on.

So the rows are held at the first and become part of the second, whose own transaction is empty in the log: behind this
module they are rows of the transaction that commits them, under its GTID and its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from incsnap.binlog import runs
from incsnap.binlog.prepared import PreparedTransactions, XaEvents, XaMark, XaTransaction
from incsnap.binlog.protocol.control_events import INFLATED_BLOCK
from incsnap.binlog.protocol.frames import PAD, Block, Longs
from incsnap.binlog.runs import Events, classify
from incsnap.binlog.segments import Segment
from incsnap.binlog.transactions import TransactionBuilder
from incsnap.ddl.xa_statements import is_one_phase, read_xa
from incsnap.errors import BinlogError, shorten


class XaTransactions:
    """What ``StreamReader`` does about them. ``state`` is its own: a transaction is open in it at each call."""

    def __init__(self, state: TransactionBuilder, prepared: PreparedTransactions) -> None:
        self._state = state
        self._prepared = prepared

    def statement(self, sql: str, place: tuple[int, int]) -> Iterator[Segment]:
        """An XA statement between ``place`` in the file: START, END, COMMIT or ROLLBACK."""
        statement = read_xa(sql)
        opened = self._state.open
        where = self._state.place.named(place[0])
        if statement is None or opened is None:
            raise BinlogError(f"{where}: the XA statement {shorten(sql)!r} is not of a known form")
        verb, xid = statement
        gtid = self._state.name_of(opened)
        if verb in ("START", "BEGIN"):
            self._state.xa_begins(xid)
            self._prepared.begin(xid, gtid, self._state.place.file)
        elif verb == "COMMIT":
            transaction = self._prepared.of(xid, gtid, where)
            yield from self._rows(transaction, place)
            self._prepared.finish(transaction)
            yield self._end(transaction, prepared=False)
        elif verb == "ROLLBACK":
            yield self._end(self._prepared.roll_back(xid), prepared=False)

    def add(self, events: Events, fixed: tuple[int, int] | None) -> None:
        """A run of events before XA PREPARE. ``fixed`` as in ``TransactionBuilder.add_run``."""
        state = self._state
        for run, table, begin_at in state.runs(events, fixed):
            if bool((run.classes > runs.ROWS).any()):
                where = state.place.named(int(begin_at[0]))
                raise BinlogError(f"{where}: another transaction begins inside of one of XA")
            kept = state.kept(run, table)
            passed_over = bool(((run.classes == runs.ROWS) & (table < 0)).any())
            self._prepared.add(XaEvents(*run.joined(kept), begin_at[kept]), passed_over=passed_over)

    def prepare(self, body: bytes, place: tuple[int, int]) -> Iterator[Segment]:
        """The event that prepares; or that commits in one phase, where nothing is prepared before."""
        opened = self._state.open
        if opened is None or not opened.xid:
            raise BinlogError(f"{self._state.place.named(place[0])}: an XA transaction ends that never began")
        if is_one_phase(body):
            transaction = self._prepared.commit_open()
            yield from self._rows(transaction, place)
            yield self._end(transaction, prepared=False)
        else:
            yield self._end(self._prepared.prepare(), prepared=True)

    def _rows(self, transaction: XaTransaction, place: tuple[int, int]) -> Iterator[Segment]:
        """As part of the transaction that is open here, each with its own place in the log: places tell events apart,
        and a key's follow each other, as it was locked. Which tables are included is asked again: the choice may have
        changed.
        """
        here = self._state.place.file, place[0]
        for events in self._prepared.events(transaction):
            for block, positions in _blocks(events):
                run = replace(classify(block, 0), at=positions)
                for segment in self._state.add_run(run, place):
                    yield replace(segment, file=transaction.file, visible_at=here)

    def _end(self, transaction: XaTransaction, *, prepared: bool) -> Segment:
        return replace(self._state.fragment_without_events(ends=True), marks=(XaMark(transaction, prepared),))


def _blocks(events: XaEvents) -> Iterator[tuple[Block, Longs]]:
    """About a megabyte each, so that the buffer's bound is kept."""
    offsets = events.offsets
    begin, count = 0, len(events.positions)
    while begin < count:
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + INFLATED_BLOCK, "right")) - 1)
        places = offsets[begin : end + 1] - offsets[begin]
        data = events.payload[offsets[begin] : offsets[end]] + PAD
        yield Block(data, places[:-1], places[1:]), events.positions[begin:end]
        begin = end
