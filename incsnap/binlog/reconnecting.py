"""Read on whatever happens to the connection, until the server has been away for too long."""

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
    """Calls ``read`` again whenever the connection is lost, until ``closed``.

    ``connections`` counts those that were made. One that brought something (``position``), or that held for seconds
    on an idle server, shows that the server was there until now; one that is lost at once again and again (another
    client with our server id) does not. Raises ``ServerUnreachable`` after ``reconnect_seconds`` without.
    """
    seconds = _FIRST_PAUSE_SECONDS
    last_there = time.monotonic()
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
                last_there, seconds = now, _FIRST_PAUSE_SECONDS
            if now - last_there > reconnect_seconds:
                raise ServerUnreachable(f"the binlog cannot be read since {reconnect_seconds:.0f} s: {lost}") from lost
            _log.warning("binlog connection lost at %s: %s; connecting again", position(), lost)
            pause(seconds)
            seconds = min(seconds * 2, _LONGEST_PAUSE_SECONDS)
