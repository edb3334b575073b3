"""The classification of errors of a chunk: its manifest says whether the chunk is read again, halved or given up."""

from __future__ import annotations

import logging

import pyarrow as pa
import pymysql
from pymysql.constants import ER

from incsnap.envelope.snapshot_records import RecordsTooLarge
from incsnap.errors import (
    ChunkFailed,
    IncsnapError,
    ServerUnreachable,
    StoreFailed,
    UnsupportedType,
    ValueRefused,
    shorten,
)
from incsnap.mysql.error_codes import CHANGED, IN_THE_WAY
from incsnap.mysql.session import QueryRefusedError, is_gone
from incsnap.snapshot import failures
from incsnap.snapshot.window import ChunkResult

log = logging.getLogger(__name__)


class ChunkRefused(Exception):
    """An error: the chunk cannot be read as the planner ordered. `kind` is one of the kinds in `snapshot.failures`, and
    decides whether the planner orders the chunk again, halves it, or gives it up.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def _kind(error: Exception) -> str:
    """Return the kind of the failure, one of `snapshot.failures` or "value", "sql" or "defect".

    The kind decides whether the chunk is read again, halved or given up.
    """
    if isinstance(error, ChunkFailed):
        cause = error.__cause__
        if isinstance(cause, pymysql.err.MySQLError):
            return _kind_of_refusal(cause)
        return "value" if cause is not None else failures.TOO_LARGE
    if isinstance(error, ChunkRefused):
        return error.kind
    for kinds, kind in _KINDS:
        if isinstance(error, kinds):
            return kind
    # A plain IncsnapError means that a column has more than 2 GiB.
    if type(error) is IncsnapError:
        return failures.TOO_LARGE
    log.error("Reading a chunk has failed with an error that nobody expected; please report it", exc_info=error)
    return "defect"


#: Kinds of failure by the classes of errors.
_KINDS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((UnsupportedType,), failures.UNSUPPORTED),
    # An OSError of a connection became ServerUnreachable before. So this one is of the store of window files and lists
    # of keys, which is full or away.
    ((ServerUnreachable, OSError, StoreFailed), failures.UNREACHABLE),
    ((QueryRefusedError,), failures.SHAPE),
    ((MemoryError, pa.ArrowCapacityError, RecordsTooLarge), failures.TOO_LARGE),
    # The planner finds the row by halving and puts it into quarantine.
    ((ValueRefused,), "value"),
)


def _kind_of_refusal(error: pymysql.err.MySQLError) -> str:
    """Return the kind of an error that MySQL answered."""
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


def failed(error: Exception) -> ChunkResult:
    """Return the result of a chunk that met `error`, for its manifest. The text is `kind: message`."""
    text = error.message if isinstance(error, IncsnapError) else shorten(error, 400)
    return ChunkResult(error=f"{_kind(error)}: {text}")
