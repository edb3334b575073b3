"""Where a new job begins that does not begin now: the set of transactions before a given place.

Whoever says a place has sent what is before it. So it is refused where it cannot be known surely which transactions
those are, where the server cannot send one of the others, and where it does not know one of these.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from pymysql.connections import Connection

from incsnap.config.snapshot_settings import StartPlace
from incsnap.errors import ConfigError, shorten
from incsnap.events import base_name, file_number
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.session import query

log = logging.getLogger(__name__)

_GTIDS, _FILE, _POSITION = "incsnap.start.gtid.set", "incsnap.start.binlog.file", "incsnap.start.binlog.position"
#: The first event of a file.
_FIRST_POSITION = 4
#: Events that are asked for at once.
_PAGE = 10_000
#: Types of events, as the server calls them.
_BEGINS = ("Gtid", "Gtid_tagged")
_HEADER = ("Format_desc", "Previous_gtids")
_BETWEEN_TRANSACTIONS = (*_BEGINS, "Anonymous_Gtid", "Rotate", "Stop")
_READ_TABLES = "Name a later place; or begin without one, with snapshot.mode=initial, which reads the tables."


def start_gtids(connection: Connection[Any], place: StartPlace) -> GtidSet:
    """The transactions before the place. Raises ``ConfigError`` where that is refused."""
    if place.gtid_set is not None:
        before, name = GtidSet.parse(place.gtid_set), _GTIDS
    else:
        before, name = _before_position(connection, place.file, place.position), _FILE
    require_sendable(connection, before, name, _READ_TABLES)
    return before


def require_sendable(connection: Connection[Any], before: GtidSet, name: str, hint: str) -> None:
    """Raise ``ConfigError`` if the server cannot send all that follows the transactions ``before``.

    ``name`` is what says so, ``hint`` the way out where the binlog is purged.
    """
    unknown = before - watermarks.executed(connection)
    if unknown:
        raise ConfigError(
            f"{name}: the server does not know {shorten(unknown)}, which is said to be sent",
            "Is it the server that the place is of? Correct the place; where it is a replica that is behind, wait.",
        )
    gone = watermarks.purged(connection) - before
    if gone:
        raise ConfigError(f"{name}: the binlog no longer holds {shorten(gone)}, which comes behind this place", hint)


def _before_position(connection: Connection[Any], file: str, position: int) -> GtidSet:
    files = {str(row[0]): int(row[1]) for row in query(connection, "SHOW BINARY LOGS")}
    if file not in files:
        oldest = min(files, key=file_number)
        alike = any(base_name(each) == base_name(file) for each in files)
        why = f"the oldest is {oldest}" if alike else f"its files are called {base_name(oldest)}.*"
        raise ConfigError(f"{_FILE}: the server has no binlog file {shorten(file)}, {why}", _READ_TABLES)
    if position > files[file]:
        raise ConfigError(
            f"{_POSITION}: {file} has {files[file]} bytes, not {position}",
            "Is it the server that the place is of? Correct the place.",
        )
    return _before(_events(connection, file), file, position)


def _events(connection: Connection[Any], file: str) -> Iterator[tuple[Any, ...]]:
    """File, position, type, server id, end and text of each event, in pages: a file may hold millions."""
    following = _FIRST_POSITION
    while page := query(connection, "SHOW BINLOG EVENTS IN %s FROM %s LIMIT %s", (file, following, _PAGE)):
        yield from page
        following = int(page[-1][4])
        if len(page) < _PAGE:
            return


def _before(events: Iterator[tuple[Any, ...]], file: str, position: int) -> GtidSet:
    """What is before the transaction that has the position, or begins there. ``events``: of the whole file."""
    before, newest, is_known = GtidSet(), GtidSet(), False
    for _, begin, kind, _, end, text in events:
        is_known = is_known or position in (int(begin), int(end))
        if int(begin) >= position and kind not in _HEADER:
            if kind not in _BETWEEN_TRANSACTIONS and newest:
                log.warning("%s:%d is inside of %s, which is sent from its beginning", file, position, newest)
                newest = GtidSet()
            break
        if kind == "Anonymous_Gtid":
            raise ConfigError(
                f"{_FILE}: {file} has a transaction without GTID, at {begin}",
                "Begin in a file that was begun after gtid_mode=ON, or without a place, with snapshot.mode=initial.",
            )
        if kind == "Previous_gtids":
            before = GtidSet.parse(str(text))
        elif kind in _BEGINS:
            before |= newest
            newest = GtidSet.parse(str(text).partition("'")[2].rpartition("'")[0])
    if not is_known:
        raise ConfigError(
            f"{_POSITION}: no event of {file} begins at {position}",
            "Is it the server that the place is of? Correct the place (SHOW BINLOG EVENTS tells where events begin).",
        )
    return before | newest
