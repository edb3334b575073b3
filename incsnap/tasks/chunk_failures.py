"""Says whose fault it was that a chunk could not be read, for its manifest."""

from __future__ import annotations

import logging

import pyarrow as pa
import pymysql
from pymysql.constants import ER

from incsnap.envelope.records import RecordsTooLarge
from incsnap.errors import ChunkFailed, IncsnapError, ServerUnreachable, UnsupportedType, ValueRefused, shorten
from incsnap.mysql.error_codes import CHANGED, IN_THE_WAY
from incsnap.mysql.session import QueryRefusedError, is_gone
from incsnap.snapshot import failures
from incsnap.snapshot.window import Reading

log = logging.getLogger(__name__)


class SharedKeyError(Exception):
    """Rows that cannot be told apart."""


class AnotherLogError(Exception):
    """The server's binlog is another than the stream's."""


class StalledError(Exception):
    """The low watermark was not reached in time."""


class ShapeChangedError(Exception):
    """The table is not the one that the chunk was planned for; the DDL is on its way through the log."""


def _kind(error: Exception) -> str:
    """Says whose fault it was: whether the chunk is read again, halved or given up (``snapshot.failures``)."""
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
    code = error.args[0]
    if code == ER.QUERY_TIMEOUT:
        return failures.TIMEOUT
    if code in IN_THE_WAY:  # not the chunk's fault
        return failures.STALLED
    if code in CHANGED or code == ER.TABLE_DEF_CHANGED:
        return failures.SHAPE
    return "sql"


def failed(error: Exception) -> Reading:
    """What the manifest says of a chunk that has met ``error``."""
    text = error.message if isinstance(error, IncsnapError) else shorten(error, 400)
    return Reading(error=f"{_kind(error)}: {text}")
