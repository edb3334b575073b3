"""The search for an XA PREPARE from before the stream's beginning, backwards through the files of the binlog.

A job that begins while transactions are prepared has missed their rows, and XA COMMIT does not repeat them. The rows
are still in the binlog, mostly in its newest file: a prepared transaction holds locks, so few grow old.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pymysql

from incsnap.binlog.log_files import before_file, log_files
from incsnap.binlog.prepared import NotPrepared, PreparedTransactions
from incsnap.binlog.protocol.dump_connection import open_stream, translated
from incsnap.binlog.protocol.frames import blocks_until
from incsnap.binlog.segments import IdTable
from incsnap.binlog.stream_reader import StreamReader
from incsnap.binlog.xa_parts import XaMark, XaTransaction
from incsnap.errors import BinlogError, shorten
from incsnap.events import NOWHERE, BinlogPosition, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.tables import TableId

_log = logging.getLogger(__name__)

#: Seconds between two heartbeats. They show how far the server is while it skips transactions.
_HEARTBEAT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """A search for XA PREPARE in the server's binlog, by a connection of its own."""

    connect: Callable[[], Any]  #: opens a PyMySQL connection with REPLICATION SLAVE and REPLICATION CLIENT
    server_id: int  #: no other stream without a replica uuid has this id meanwhile (see `connect_beside`)
    included: Callable[[TableId], bool]  #: whether a table is included
    prepared: PreparedTransactions  #: gets the transactions that are found
    damaged: str = "fail"  #: handling of damaged rows events (see StreamReader)
    closed: Callable[[], bool] = lambda: False  #: whether to give up
    take: Callable[[XaTransaction], None] | None = None  #: called with each transaction found; None: `prepared.adopt`

    def around(self, read: Callable[[], None], delivered: Callable[[], GtidSet]) -> None:
        """Call `read`. If it ends at an XA COMMIT whose XA PREPARE was not read, search for the XA PREPARE.

        The caller then calls this method again, and `read` continues. The search also takes all other transactions that
        are still prepared in the files that it reads. Their XA COMMITs may come next, and each would need a search of
        its own. Raise BinlogError if the binlog no longer holds the XA PREPARE.
        """
        try:
            read()
        except NotPrepared as unknown:
            _log.warning("%s", unknown)
            if self.find([unknown.xid], delivered(), along=None):
                behind = delivered() | GtidSet.parse(unknown.gtid)
                raise BinlogError(
                    f"{unknown.place}: {unknown.gtid} is the XA COMMIT of {unknown.xid}, and the binlog file with its"
                    " XA PREPARE is purged. That file had the transaction's rows, so they cannot be sent as events",
                    "To go on behind this transaction, start with a new checkpoint.location, snapshot.mode=no_data and"
                    f" incsnap.start.gtid.set={behind}. Then signal execute-snapshot for the tables of the transaction."
                    " If a connector has sent its rows at XA PREPARE, no snapshot is needed.",
                ) from None

    def find(self, xids: Collection[str], before: GtidSet, along: Collection[str] | None = ()) -> set[str]:
        """Search the transactions `before` for the XA PREPARE of each of `xids`, and take the transactions that are
        still prepared there.

        `before` is the set of GTIDs to search. The files of the binlog are read one by one, the newest first, until all
        `xids` were met. `along` are further names: their transactions are also taken if they are in these files. None
        stands for all names, and then a file with any of them is read twice. Return the names without an XA PREPARE, XA
        COMMIT or XA ROLLBACK in the files. Raise ConnectionLost or an IncsnapError if the server cannot be read.
        """
        left, searched = set(xids), {*xids, *(along or ())}
        #: Names of transactions that the files read so far begin or end (`_prepared_in`).
        newer = set[str]()
        try:
            with closing(self.connect()) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT @@GLOBAL.gtid_executed")
                executed = GtidSet.parse(str(cursor.fetchone()[0]))
                files = log_files(cursor)
                following = before
                while files and left:
                    file, end = files.pop()
                    passed = before_file(cursor, file)
                    inside = before - (before - following) - passed
                    following = passed
                    if inside:
                        part = _Part(file, end, executed - inside, inside)
                        if along is None:
                            searched = self._prepared_in(part, newer)
                        seen = self._take(part, searched) if searched else set()
                        left -= seen | newer
                        searched -= seen
        except (pymysql.err.MySQLError, OSError) as failed:
            raise translated(failed) from failed
        return left

    def behind(self, delivered: GtidSet) -> tuple[set[str], set[str]]:
        """Return names of XA transactions from the binlog behind `delivered`, up to its present end.

        The first set names transactions whose XA PREPARE is behind `delivered`. The second names transactions whose XA
        COMMIT is behind `delivered`, and whose XA PREPARE is in `delivered`. Raise ConnectionLost or an IncsnapError if
        the server cannot be read.
        """
        prepared, committed = set[str](), set[str]()
        try:
            with closing(self.connect()) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT @@GLOBAL.gtid_executed")
                executed = GtidSet.parse(str(cursor.fetchone()[0]))
                file, end = log_files(cursor)[-1]
        except (pymysql.err.MySQLError, OSError) as failed:
            raise translated(failed) from failed
        for mark in self._marks(_Part(file, end, delivered, executed - delivered), ()):
            if mark.prepared:
                prepared.add(mark.transaction.xid)
            elif not mark.rolled_back and not mark.transaction.gtid:  # no XA PREPARE and no XA START was read
                committed.add(mark.transaction.xid)
        return prepared, committed

    def _prepared_in(self, part: _Part, newer: set[str]) -> set[str]:
        """Return the names of the transactions that are still prepared at the end of `part` and not held yet.

        `newer` are names that newer files begin or end: what an older file has of them has ended. Those of this file
        are added.
        """
        names, met = set[str](), set[str]()
        for mark in self._marks(part, ()):
            xid = mark.transaction.xid
            if mark.prepared:
                names.add(xid)
            elif xid in names:
                names.discard(xid)
            else:
                met.add(xid)
        prepared = {xid for xid in names - newer if not self.prepared.holds(xid)}
        newer |= names | met
        return prepared

    def _take(self, part: _Part, xids: Collection[str]) -> set[str]:
        """Search `part` for `xids`, and take those of their transactions that stay prepared.

        Return the names that are prepared or ended there.
        """
        _log.info("Searching %s for the XA PREPARE of %s", part.file, shorten(", ".join(sorted(xids))))
        marks = {mark.transaction.xid: mark for mark in self._marks(part, xids) if mark.transaction.xid in xids}
        for mark in marks.values():
            if mark.prepared:
                (self.take or self.prepared.adopt)(mark.transaction)
        return set(marks)

    def _marks(self, part: _Part, xids: Collection[str]) -> Iterator[XaMark]:
        """Yield each XA PREPARE, XA COMMIT and XA ROLLBACK in `part`, in order. Transactions of `xids` have their
        events."""
        stream, source = open_stream(
            self.connect, self.server_id, part.delivered, _HEARTBEAT_SECONDS, NOWHERE, self.closed
        )
        with closing(stream):
            ids = IdTable(self.included)
            prepared = self.prepared.sibling(xids)
            reader = StreamReader(StreamPosition(part.delivered, "", 0), ids, self.damaged, prepared=prepared)
            reader.stream_begins(checksum=source.checksum, server_uuid=source.server_uuid)
            seen = GtidSet()

            def ended() -> bool:
                # Stop at the file's end at the latest: the server may have executed transactions that are in no file
                # (gtid_purged).
                return part.inside <= seen or reader.position >= BinlogPosition(part.file, part.end)

            for block in blocks_until(ended, stream.read, self.closed):
                segments = list(reader.add(block))
                for segment in segments:
                    # After `inside` the server also sends transactions that were executed later.
                    if segment.marks and ids.gtids([(segment, 0, 1)]) <= part.inside:
                        yield from segment.marks
                seen |= ids.gtids((segment, 0, segment.complete) for segment in segments)


@dataclass(frozen=True, slots=True)
class _Part:
    """The transactions of a file that are searched."""

    file: str  #: name of the file
    end: int  #: the file's end
    delivered: GtidSet  #: what the server need not send
    inside: GtidSet  #: the transactions
