"""The place where a new job begins if the settings name one, as the GTID set of all transactions before it.

With such a place the user says that everything before it was sent. So a place is refused if the transactions before it
cannot be determined. It is also refused if the server cannot send a later transaction or does not know an earlier one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from pymysql.connections import Connection

from incsnap.config.settings import StartPlace
from incsnap.errors import ConfigError, shorten
from incsnap.events import base_name, file_number
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.session import query

log = logging.getLogger(__name__)

_GTIDS, _FILE, _POSITION = "incsnap.start.gtid.set", "incsnap.start.binlog.file", "incsnap.start.binlog.position"
#: Position of the first event in a binlog file.
_FIRST_POSITION = 4
#: Events of one SHOW BINLOG EVENTS.
_PAGE = 10_000
#: Event types, as the server calls them.
_BEGINS = ("Gtid", "Gtid_tagged")
_HEADER = ("Format_desc", "Previous_gtids")
_BETWEEN_TRANSACTIONS = (*_BEGINS, "Anonymous_Gtid", "Rotate", "Stop")
#: The repair where the binlog before a place is purged.
READ_TABLES = "Name a later place; or begin without one, with snapshot.mode=initial, which reads the tables."


def start_gtids(connection: Connection[Any], place: StartPlace) -> GtidSet:
    """Return the transactions before the place, which is no time. Raise ConfigError if the place is refused.

    The place `earliest` is allowed too. `binlog.time_search` finds the place of a time.
    """
    if place.time_us == 0:
        return watermarks.purged(connection)
    if place.gtid_set is not None:
        before, name = GtidSet.parse(place.gtid_set), _GTIDS
    else:
        before, name = _before_position(connection, place.file, place.position), _FILE
    require_sendable(connection, before, name, READ_TABLES)
    return before


def require_sendable(connection: Connection[Any], before: GtidSet, name: str, hint: str) -> None:
    """Raise ConfigError if the server cannot send all transactions after the set `before`.

    `name` is the setting that the error names. `hint` is the repair if the binlog is purged.
    """
    unknown = before - watermarks.executed(connection)
    if unknown:
        raise ConfigError(
            f"{name}: the server does not know {shorten(unknown)}, which this place counts as sent",
            "Check that the place is from this server, and correct it. If the server is a replica that lags, wait.",
        )
    gone = watermarks.purged(connection) - before
    if gone:
        raise ConfigError(f"{name}: the binlog no longer holds {shorten(gone)}, which follows this place", hint)


def _before_position(connection: Connection[Any], file: str, position: int) -> GtidSet:
    """Return the transactions before a position. Raise ConfigError if the file or the position does not exist."""
    files = {str(row[0]): int(row[1]) for row in query(connection, "SHOW BINARY LOGS")}
    if file not in files:
        oldest = min(files, key=file_number)
        alike = any(base_name(each) == base_name(file) for each in files)
        why = f"the oldest is {oldest}" if alike else f"its files are called {base_name(oldest)}.*"
        raise ConfigError(f"{_FILE}: the server has no binlog file {shorten(file)}, {why}", READ_TABLES)
    if position > files[file]:
        raise ConfigError(
            f"{_POSITION}: {file} has {files[file]} bytes, not {position}",
            "Check that the place is from this server, and correct it.",
        )
    return _before(events_of(connection, file), file, position)


def events_of(connection: Connection[Any], file: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of SHOW BINLOG EVENTS for a file: file, position, type, server id, end and text.

    Read them in pages, because a file may hold millions.
    """
    following = _FIRST_POSITION
    while page := query(connection, "SHOW BINLOG EVENTS IN %s FROM %s LIMIT %s", (file, following, _PAGE)):
        yield from page
        following = int(page[-1][4])
        if len(page) < _PAGE:
            return


def logged_gtid(text: Any) -> GtidSet:
    """Return the transaction that begins with a Gtid event. `text`: what SHOW BINLOG EVENTS prints of the event."""
    return GtidSet.parse(str(text).partition("'")[2].rpartition("'")[0])


def _before(events: Iterator[tuple[Any, ...]], file: str, position: int) -> GtidSet:
    """Return the transactions before the one that contains `position` or begins there.

    `events` are those of the whole file. Raise ConfigError if no event begins at `position`, or if a transaction has no
    GTID.
    """
    before, newest, is_known = GtidSet(), GtidSet(), False
    for _, begin, kind, _, end, text in events:
        is_known = is_known or position in (int(begin), int(end))
        if int(begin) >= position and kind not in _HEADER:
            if kind not in _BETWEEN_TRANSACTIONS and newest:
                log.warning("%s:%d is inside transaction %s, which is sent from its beginning", file, position, newest)
                newest = GtidSet()
            break
        if kind == "Anonymous_Gtid":
            raise ConfigError(
                f"{_FILE}: {file} has a transaction without GTID, at {begin}",
                "Name a file that begins after gtid_mode=ON; or name no place, with snapshot.mode=initial.",
            )
        if kind == "Previous_gtids":
            before = GtidSet.parse(str(text))
        elif kind in _BEGINS:
            before |= newest
            newest = logged_gtid(text)
    if not is_known:
        raise ConfigError(
            f"{_POSITION}: no event of {file} begins at {position}",
            "Check that the place is from this server, and correct it (SHOW BINLOG EVENTS shows where events begin).",
        )
    return before | newest
