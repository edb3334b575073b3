"""The search for an XA PREPARE that came before all that was read, back through the files of the binlog.

Whoever begins to read while transactions are prepared has missed their rows, and gets them with XA COMMIT from nobody.
They are still in the binlog, mostly in its newest file: a prepared transaction holds locks, so few of them grow old.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pymysql

from incsnap.binlog.prepared import NotPrepared, PreparedTransactions, XaMark, XaTransaction
from incsnap.binlog.protocol.dump_connection import open_stream, translated
from incsnap.binlog.read_again import segments_until
from incsnap.binlog.segments import Names
from incsnap.binlog.stream_reader import StreamReader
from incsnap.errors import BinlogError, shorten
from incsnap.events import NOWHERE, BinlogPosition, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.tables import TableId

_log = logging.getLogger(__name__)

#: Of an encrypted file: in its size, not in the places of its events.
_HEADER_BYTES = 512
#: The server says where it is while it passes over transactions.
_HEARTBEAT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """``connect`` opens a PyMySQL connection with REPLICATION SLAVE and REPLICATION CLIENT. ``server_id``: nobody else
    reads with it meanwhile, but who tells a uuid (``read_again.connect_beside``). ``prepared``: where that goes which
    is found. ``take``: how it goes there, ``prepared.adopt`` where it is None."""

    connect: Callable[[], Any]
    server_id: int
    included: Callable[[TableId], bool]
    prepared: PreparedTransactions
    damaged: str = "fail"
    closed: Callable[[], bool] = lambda: False
    take: Callable[[XaTransaction], None] | None = None

    def around(self, read: Callable[[], None], delivered: Callable[[], GtidSet]) -> None:
        """Call ``read``. Where it ended at the XA COMMIT of a transaction whose XA PREPARE was not read, look for that.

        The next call goes on then. Others that are sought are taken along: under load their XA COMMITs come next. Raise
        BinlogError where the binlog does not hold the XA PREPARE any more.
        """
        try:
            read()
        except NotPrepared as unknown:
            _log.warning("%s", unknown)
            if self.find([unknown.xid], delivered(), along=self.prepared.sought()):
                raise BinlogError(
                    f"{unknown}, and which the binlog does not hold any more",
                    "Its changes are visible in the tables, but cannot be sent as changes any more. Start with a new"
                    " checkpoint.location and signal execute-snapshot for the tables.",
                ) from None

    def find(self, xids: Collection[str], before: GtidSet, along: Collection[str] = ()) -> set[str]:
        """Take those of ``xids`` into ``prepared`` that are so behind the transactions ``before``.

        Return those of which the binlog holds neither XA PREPARE nor an end in there. Raise ConnectionLost, or an
        IncsnapError.
        ``along``: names that are taken too, from the files that are read for ``xids``.
        """
        left, searched = set(xids), {*xids, *along}
        try:
            with closing(self.connect()) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT @@GLOBAL.gtid_executed")
                executed = GtidSet.parse(str(cursor.fetchone()[0]))
                cursor.execute("SHOW BINARY LOGS")
                files = [
                    (str(row[0]), int(row[1]) - _HEADER_BYTES * (row[2:3] == ("Yes",))) for row in cursor.fetchall()
                ]
                following = before
                while files and left:
                    file, end = files.pop()
                    cursor.execute("SHOW BINLOG EVENTS IN %s LIMIT 3", (file,))
                    passed = next(GtidSet.parse(str(row[5])) for row in cursor.fetchall() if row[2] == "Previous_gtids")
                    inside = before - (before - following) - passed
                    following = passed
                    if inside:
                        seen = self._take((file, end), executed - inside, inside, searched)
                        left -= seen
                        searched -= seen
        except (pymysql.err.MySQLError, OSError) as failed:
            raise translated(failed) from failed
        return left

    def _take(self, place: tuple[str, int], delivered: GtidSet, inside: GtidSet, xids: Collection[str]) -> set[str]:
        """Return those of ``xids`` that transactions of ``inside``, in a file up to that place, prepare or end last."""
        _log.info("searching %s for the XA PREPARE of %s", place[0], shorten(", ".join(sorted(xids))))
        marks = self._marks(place, delivered, inside, xids)
        for mark in marks.values():
            if mark.prepared:
                (self.take or self.prepared.adopt)(mark.transaction)
        return set(marks)

    def _marks(
        self, place: tuple[str, int], delivered: GtidSet, inside: GtidSet, xids: Collection[str]
    ) -> dict[str, XaMark]:
        stream, source = open_stream(self.connect, self.server_id, delivered, _HEARTBEAT_SECONDS, NOWHERE, self.closed)
        with closing(stream):
            names = Names(self.included)
            prepared = self.prepared.sibling(xids)
            reader = StreamReader(StreamPosition(delivered, "", 0), names, self.damaged, prepared=prepared)
            reader.stream_begins(checksum=source.checksum, server_uuid=source.server_uuid)
            seen, marks = GtidSet(), dict[str, XaMark]()

            def ended() -> bool:
                # At the end of the file, at most: the server may have executed what is in none (gtid_purged).
                return inside <= seen or reader.position >= BinlogPosition(*place)

            for segments in segments_until(ended, reader, stream.read, self.closed):
                for segment in segments:
                    # Behind ``inside`` the server goes on with what was not executed yet.
                    if segment.marks and names.gtids([(segment, 0, 1)]) <= inside:
                        marks |= {mark.transaction.xid: mark for mark in segment.marks if mark.transaction.xid in xids}
                seen |= names.gtids((segment, 0, segment.complete) for segment in segments)
            return marks
