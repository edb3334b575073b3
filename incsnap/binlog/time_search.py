"""The search for the transaction in the binlog at which a given time begins.

A transaction's time is that of its commit on the server that made it, as its GTID event has it. The search compares the
time with the first transactions of the binlog files, by halving, and then reads one file. Each look is a connection of
its own, whose stream ends with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pymysql

from incsnap.binlog.log_files import before_file, log_files
from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.protocol.dump_connection import connect_beside, open_stream, translated
from incsnap.binlog.protocol.frames import blocks_until
from incsnap.binlog.segments import IdTable, Segment
from incsnap.binlog.stream_reader import StreamReader
from incsnap.errors import ConfigError
from incsnap.events import NOWHERE, StreamPosition
from incsnap.gtid import GtidSet

_AT = "incsnap.start.at"
#: Seconds between two heartbeats. They show how far the server is while it skips transactions.
_HEARTBEAT_SECONDS = 1.0


def gtids_before(connect: Callable[[], Any], server_id: int, time_us: int) -> GtidSet:
    """Return the transactions before the first one in the binlog that was committed at `time_us` or later.

    `connect` opens a PyMySQL connection with REPLICATION SLAVE and REPLICATION CLIENT. `server_id` is that of the job.
    `time_us` is in µs since 1970. If no transaction is that late, the result has all transactions of the binlog. Raise
    ConfigError if the time lies in the future, or if the binlog of that time may be purged. Raise ConnectionLost or
    another IncsnapError if the server cannot be read.
    """
    try:
        with closing(connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.gtid_purged, UNIX_TIMESTAMP(NOW(6))")
            [(text, now)] = cursor.fetchall()
            files, purged = log_files(cursor), GtidSet.parse(str(text))
            # Transactions may be purged without ever having been in a file: `SET GLOBAL gtid_purged`.
            beginnings = [purged | before_file(cursor, file) for file, _ in files]
    except (pymysql.err.MySQLError, OSError) as failed:
        raise translated(failed) from failed
    if time_us > now * 1_000_000:
        raise ConfigError(
            f"{_AT}: {_shown(time_us)} is in the future of the server, where it is {_shown(int(now * 1_000_000))}",
            "Correct the time or its zone, or remove the setting to begin at the end of the binlog.",
        )
    look = _Look(connect, server_id, files[-1])
    # Files before `begin` begin before the time, files from `end` on do not.
    begin, end, oldest = 0, len(files), None
    while begin < end:
        middle = (begin + end) // 2
        first = look.first_time(beginnings[middle])
        if first is not None and first < time_us:
            begin = middle + 1
        else:
            end, oldest = middle, first
    if begin:
        return look.before(beginnings[begin - 1], time_us)
    if purged and oldest != time_us:
        since = f"; its oldest transaction is of {_shown(oldest)}" if oldest else ""
        raise ConfigError(
            f"{_AT}: the binlog of {_shown(time_us)} may be purged{since}",
            f"Set a later time. Or set {_AT}=earliest to begin with the oldest transaction. Or remove the setting and"
            " set snapshot.mode=initial, which reads the tables.",
        )
    return beginnings[0]


def first_time_behind(connect: Callable[[], Any], server_id: int, before: GtidSet, end: tuple[str, int]) -> int | None:
    """Return the commit time of the first transaction behind `before`, in µs since 1970; None if there is none.

    `end`: file and position up to which the binlog is read. The other parameters and the errors are those of
    `gtids_before`.
    """
    return _Look(connect, server_id, end).first_time(before)


def _shown(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).isoformat()


@dataclass(frozen=True, slots=True)
class _Look:
    """A reader of commit times from any place of the binlog up to its end."""

    connect: Callable[[], Any]  #: opens a connection
    server_id: int  #: that of the job
    end: tuple[str, int]  #: file and position at which the binlog ended when the search began

    def first_time(self, before: GtidSet) -> int | None:
        """Return the commit time of the first transaction behind `before`, in µs since 1970; None if there is none."""
        for segment, _ in self._segments(before):
            if len(segment.transactions):
                return int(segment.transactions["ts_us"][0])
        return None

    def before(self, before: GtidSet, time_us: int) -> GtidSet:
        """Return `before` and the transactions behind it up to the first one with the commit time `time_us` or
        later."""
        passed = before
        for segment, ids in self._segments(before):
            late = np.flatnonzero(segment.transactions["ts_us"] >= time_us)
            end = min(int(late[0]), segment.complete) if len(late) else segment.complete
            passed |= ids.gtids([(segment, 0, end)])
            if len(late):
                break
        return passed

    def _segments(self, before: GtidSet) -> Iterator[tuple[Segment, IdTable]]:
        """Yield the segments behind `before`, without events, up to the end of the binlog."""
        ids = IdTable(lambda _: False)
        # XA transactions count at their XA PREPARE, so nothing is asked of those that were prepared before.
        prepared = PreparedTransactions().sibling(())
        reader = StreamReader(StreamPosition(before, "", 0), ids, "skip", prepared=prepared)
        stream, source = open_stream(
            lambda: connect_beside(self.connect), self.server_id, before, _HEARTBEAT_SECONDS, NOWHERE, lambda: False
        )
        with closing(stream):
            reader.stream_begins(checksum=source.checksum, server_uuid=source.server_uuid)
            for block in blocks_until(lambda: reader.position.reached(*self.end), stream.read, lambda: False):
                for segment in reader.add(block):
                    yield segment, ids
