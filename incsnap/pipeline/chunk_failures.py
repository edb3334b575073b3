"""Whose fault it was that a chunk could not be read: what is written into its manifest."""

from __future__ import annotations

import logging

import pyarrow as pa
import pymysql

from incsnap.envelope.records import RecordsTooLarge
from incsnap.errors import ChunkFailed, IncsnapError, ServerUnreachable, UnsupportedType, ValueRefused, shorten
from incsnap.mysql.connection import QueryRefusedError, is_gone
from incsnap.pipeline.buffer import Manifest
from incsnap.snapshot import failures

log = logging.getLogger(__name__)


class SharedKeyError(Exception):
    """Rows that cannot be told apart."""


class AnotherLogError(Exception):
    """The server's binlog is another than the stream's."""


class StalledError(Exception):
    """The low fence was not reached in time."""


class ShapeChangedError(Exception):
    """The table is not the one that the chunk was planned for; the DDL is on its way through the log."""


def kind_of_error(error: Exception) -> str:
    """Whose fault it was: what decides whether the chunk is read again, halved or given up (``snapshot.failures``)."""
    if isinstance(error, ChunkFailed):
        cause = error.__cause__
        if isinstance(cause, pymysql.err.MySQLError):
            return _kind_of_refusal(cause)
        return "value" if cause is not None else failures.TOO_LARGE
    for kinds, kind in _KINDS:
        if isinstance(error, kinds):
            return kind
    # The plain IncsnapError is that of 2 GiB in one column.
    if type(error) is IncsnapError:
        return failures.TOO_LARGE
    log.error("A chunk failed in an unforeseen way", exc_info=error)
    return "defect"


_KINDS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((UnsupportedType,), failures.UNSUPPORTED),
    # OSError: the connection's own are ServerUnreachable, so it is where the window is written that is away or full.
    ((ServerUnreachable, OSError, AnotherLogError), failures.UNREACHABLE),
    ((ShapeChangedError, QueryRefusedError), failures.SHAPE),
    ((SharedKeyError,), failures.SHARED_KEY),
    ((StalledError,), failures.STALLED),
    ((MemoryError, pa.ArrowCapacityError, RecordsTooLarge), failures.TOO_LARGE),
    # The row is found by halving and put into quarantine.
    ((ValueRefused,), "value"),
)


def _kind_of_refusal(error: pymysql.err.MySQLError) -> str:
    if is_gone(error):
        return failures.UNREACHABLE
    match error.args[0]:
        case 3024:
            return failures.TIMEOUT
        case 1205 | 1213 | 1317:  # a locked table, a deadlock, KILL QUERY: not the chunk's fault
            return failures.STALLED
        case 1054 | 1146 | 1176 | 1412:
            return failures.SHAPE
        case _:
            return "sql"


def failed(window_id: str, kind: str, error: Exception) -> Manifest:
    text = error.message if isinstance(error, IncsnapError) else shorten(error, 400)
    return Manifest(window_id=window_id, error=f"{kind}: {text}")
