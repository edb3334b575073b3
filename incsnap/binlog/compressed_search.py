"""The search for the events of one compressed transaction in the binlog, by a connection of its own.

SHOW BINLOG EVENTS shows such a transaction as one event.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol.dump_connection import ConnectionLost, connect_beside, open_stream
from incsnap.binlog.protocol.frames import Block, blocks_until, inflated_blocks
from incsnap.errors import ServerUnreachable
from incsnap.events import NOWHERE
from incsnap.gtid import GtidSet, Source

#: Seconds between two heartbeats, which end a wait for a transaction that does not come.
_HEARTBEAT_SECONDS = 1.0
_PATIENCE_SECONDS = 60.0
#: Where a GTID event has the server's UUID and the number of the transaction.
_UUID, _NUMBER = slice(1, 17), slice(17, 25)


@dataclass(frozen=True, slots=True)
class InnerEvent:
    """An event of a compressed transaction."""

    gtid: str  #: that of the transaction
    kind: int  #: its type
    body: bytes  #: without its header


def inner_events(connect: Callable[[], Any], server_id: int, before: GtidSet) -> Iterator[InnerEvent]:
    """Yield the events of the first transaction behind `before`, BEGIN first. Yield none if it is not compressed.

    `connect` opens a PyMySQL connection of a user with REPLICATION SLAVE. `server_id` is that of the job. Raise
    ServerUnreachable if the connection breaks, or if no transaction comes.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        stream, source = open_stream(
            partial(connect_beside, connect), server_id, before, _HEARTBEAT_SECONDS, NOWHERE, lambda: False
        )
        with closing(stream):
            gtid, checksum = "", kinds.CHECKSUM if source.checksum else 0
            for block in blocks_until(lambda: False, stream.read, lambda: time.monotonic() > deadline):
                for kind, body in _events(block, checksum):
                    if gtid:
                        if kind == kinds.TRANSACTION_PAYLOAD:
                            yield from _inflated(gtid, body)
                        return
                    gtid = _gtid(kind, body)
    except ConnectionLost as lost:
        raise ServerUnreachable(f"The first transaction behind {before} cannot be read: {lost}") from lost


def _inflated(gtid: str, body: bytes) -> Iterator[InnerEvent]:
    for block in inflated_blocks(kinds.read_payload(body), gtid):
        yield from (InnerEvent(gtid, kind, inner) for kind, inner in _events(block, 0))


def _events(block: Block, checksum: int) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the body of each event."""
    for begin, end in zip(block.starts.tolist(), block.ends.tolist(), strict=True):
        yield block.data[begin + 4], bytes(block.data[begin + kinds.HEADER : end - checksum])


def _gtid(kind: int, body: bytes) -> str:
    """Return the GTID in an event; "" for an event without one."""
    if kind == kinds.GTID_TAGGED:
        source, number, _ = kinds.read_tagged_gtid(body)
        return kinds.gtid_text(source, number)
    if kind != kinds.GTID:
        return ""
    untagged: Source = (str(uuid.UUID(bytes=body[_UUID])), "")
    return kinds.gtid_text(untagged, int.from_bytes(body[_NUMBER], "little"))
