"""The loop that reads the binlog again after each lost connection, until the server has been away for too long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from incsnap.binlog.protocol.dump_connection import ConnectionLost
from incsnap.errors import ServerUnreachable
from incsnap.events import BinlogPosition

_log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 10.0
_LASTED_SECONDS = 5.0


def stay_connected(
    read: Callable[[], None],
    position: Callable[[], BinlogPosition],
    connections: Callable[[], int],
    closed: Callable[[], bool],
    pause: Callable[[float], None],
    reconnect_seconds: float,
) -> None:
    """Call `read` again whenever the connection is lost, until `closed` returns True.

    `position` returns how far the stream was read, `connections` how many connections were made. A connection shows
    that the server is there if it moved `position`, or if it lasted 5 seconds on an idle server. A connection that is
    lost at once shows nothing: another client may have our server id. Raise ServerUnreachable after `reconnect_seconds`
    without a sign of the server.
    """
    seconds = _FIRST_PAUSE_SECONDS
    last_there, is_new = time.monotonic(), True
    while not closed():
        before, made, began = position(), connections(), time.monotonic()
        try:
            read()
        except (ConnectionLost, ServerUnreachable) as lost:
            if closed():
                return
            now = time.monotonic()
            lasted = connections() != made and now - began > _LASTED_SECONDS
            if lasted or position() != before:
                last_there, seconds, is_new = now, _FIRST_PAUSE_SECONDS, True
            if now - last_there > reconnect_seconds:
                raise ServerUnreachable(f"the binlog could not be read for {reconnect_seconds:.0f} s: {lost}") from lost
            # Only the first of many attempts: the driver logs an outage of the server.
            at, level = position(), logging.WARNING if is_new else logging.DEBUG
            _log.log(level, "Binlog connection lost at %s:%d: %s; reconnecting", at.file, at.pos, lost)
            is_new = False
            pause(seconds)
            seconds = min(seconds * 2, _LONGEST_PAUSE_SECONDS)
