"""The place in the binlog that a `set-binlog-position` signal asks for.

As in Debezium, the place counts from the next start on. The signal is checked when it comes, and its place is written
beside the checkpoint. The next start begins a new job there (`begin_where_asked`).

A row of the signal table lies behind a place that is older than it, so the job comes to the row again. The offset has
the GTIDs of such rows, and a row is obeyed once.

    asked-place.json    the place for the next start
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.config.settings import Settings, StartPlace
from incsnap.errors import ConfigError, shorten
from incsnap.gtid import GtidSet
from incsnap.mysql.session import QueryRefusedError
from incsnap.mysql.start_place import start_gtids
from incsnap.snapshot.offset import Offset

log = logging.getLogger(__name__)

FILE = "asked-place.json"
#: Name of the positions in the offset.
CHANNEL = "place"


@dataclass(frozen=True, slots=True)
class AskedPlace:
    """The command of set-binlog-position: begin at another place in the binlog at the next start."""

    id: str  #: id of the signal
    place: StartPlace  #: GTID set, or file and position
    row: str = ""  #: GTID of the signal's row in the signal table; "" for other channels


class AskedPlaces:
    """The places that signals ask for, of one planner. `files` is incsnap's part of the checkpoint."""

    def __init__(self, settings: Settings, files: Files) -> None:
        self._is_job = settings.frame is None
        self._files = files

    def keep(self, asked: Iterable[AskedPlace], start: Offset, delivered: GtidSet, connection: Connection[Any]) -> None:
        """Check the places and write down the last one for the next start. Log a warning for a place that is refused.

        `start` is the offset before the batch, `delivered` are the transactions at its end.
        """
        for each in asked:
            if each.row and each.row in start.signal_positions.get(CHANNEL, ()):
                log.info("Signal %s (set-binlog-position) was obeyed before: the job began at its place", each.id)
                continue
            if not self._is_job:
                log.warning("Signal %s is ignored: a DataFrame begins where the query's checkpoint says", each.id)
                continue
            try:
                before = start_gtids(connection, each.place)
            except (ConfigError, QueryRefusedError) as error:
                log.warning("Signal %s is ignored: %s. %s", each.id, error.message, error.hint)
                continue
            self._files.write_json(FILE, {"id": each.id, "row": each.row, "gtids": str(before)}, durable=True)
            log.warning(
                "Signal %s: the next start of the job begins after the transactions %s. Sent again then: %s. Never"
                " sent, if the job does not send it before: %s.",
                each.id,
                shorten(before) or "none",
                shorten(delivered - before) or "nothing",
                shorten(before - delivered) or "nothing",
            )
