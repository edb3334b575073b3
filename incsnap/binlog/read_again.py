"""A stretch of the binlog read again, beside the tail, by a connection of its own: what both searches do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

from incsnap.binlog.protocol.dump_connection import ConnectionLost
from incsnap.binlog.protocol.frames import Framer
from incsnap.binlog.segments import Segment
from incsnap.binlog.stream_reader import StreamReader


def segments_until(
    ended: Callable[[], bool], reader: StreamReader, read: Callable[[], bytes], closed: Callable[[], bool]
) -> Iterator[list[Segment]]:
    """The segments of each block that ``reader`` makes of what ``read`` gives, until ``ended``, which is asked before
    each ``read``. ``ConnectionLost`` where the connection breaks off, or whoever searches is ``closed``.
    """
    framer = Framer()
    while not ended():
        if closed():
            raise ConnectionLost("closed")
        for block in framer.feed(read()):
            yield list(reader.add(block))


def connect_beside(connect: Callable[[], Any]) -> Any:
    """Return a connection that may stream beside the tail, with the tail's server id.

    The server ends an older connection of the same server id, where none of them tells a uuid.
    """
    connection = connect()
    with connection.cursor() as cursor:
        uuid = str(uuid4())
        # Both names: servers before 8.0.26 read the second one.
        cursor.execute("SET @replica_uuid = %s, @slave_uuid = %s", (uuid, uuid))
    return connection
