"""Reading a chunk: one SELECT, limited in time and bytes, that returns canonical columns.

A SELECT that exceeds a limit raises ChunkFailed and never slows the stream. The chunk is then planned again, smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import closing
from typing import Any

import pyarrow as pa
from pymysql.constants import ER
from pymysql.err import MySQLError

from incsnap.columns.variable import MAX_BYTES
from incsnap.errors import ChunkFailed, ServerUnreachable
from incsnap.mysql.driver_internals import read_time_out
from incsnap.mysql.session import error_of, is_gone
from incsnap.mysql.text_rows import BLOCK_BYTES, columns_of, fetch_rows
from incsnap.tables import TableId, TableShape, quote
from incsnap.types.column_type import ColumnType, describe

#: Seconds that the client waits longer than the server, so that the server's own error arrives.
_GRACE_SECONDS = 5.0


class TableLocked(ChunkFailed):
    """An error: another session has locked a table, so a SELECT has not begun."""

    hint = "`SELECT * FROM performance_schema.metadata_locks` shows which session has locked the table."

    @staticmethod
    def text(table: TableId) -> str:
        """Return the message about `table`."""
        return f"{table} is locked by another session"


def read_chunk(
    connection: Any,
    shape: TableShape,
    from_where_sql: str,
    *,
    max_bytes: int,
    timeout_seconds: float,
    needed: Set[int] | None = None,
    row_bytes: int = MAX_BYTES,
) -> list[Any]:
    """Return the canonical columns of `SELECT <columns> <from_where_sql>`, in the order of `shape`.

    `needed` holds the indexes of the columns to read; None means all. The result has None for each other column.

    Raise ChunkFailed if the server fails, if the SELECT takes longer than `timeout_seconds`, or if the rows take more
    than `max_bytes` on the wire. A single row may take `row_bytes`, at most 2 GiB. If the rows are too large or the
    connection broke, `connection.open` is False afterwards. Raise UnsupportedType for a column that cannot be read.
    """
    indexes = sorted(needed) if needed is not None else range(len(shape.columns))
    types = [describe(shape.columns[index], shape.id) for index in indexes]
    sql = chunk_select(types, from_where_sql, timeout_seconds)
    blocks: list[list[Any]] = []
    size = count = 0
    try:
        with (
            read_time_out(connection, timeout_seconds + _GRACE_SECONDS),
            closing(fetch_rows(connection, sql, block_bytes=min(BLOCK_BYTES, max_bytes))) as fetched,
        ):
            for rows in fetched:
                size += rows.packets.size
                count += len(rows)
                if size > (max_bytes if count > 1 else row_bytes):
                    raise ChunkFailed(
                        f"{shape.id}: a chunk takes more than {max_bytes} bytes",
                        "It is read again in smaller chunks. Lower incremental.snapshot.chunk.size to begin with such.",
                    )
                blocks.append(_canonical(shape, types, columns_of(rows, len(types))))
        blocks = blocks or [[pa.array([], type_.arrow) for type_ in types]]
        read = [pa.concat_arrays(parts) for parts in zip(*blocks, strict=True)]
        columns: list[Any] = [None] * len(shape.columns)
        for index, column in zip(indexes, read, strict=True):
            columns[index] = column
        return columns
    except MySQLError as error:
        code, text = error_of(error)
        if code == ER.QUERY_TIMEOUT:
            raise ChunkFailed(
                f"{shape.id}: a chunk took more than {timeout_seconds:g} seconds",
                "It is read again in smaller chunks. If this repeats, check the server's load.",
            ) from error
        raise ChunkFailed(f"{shape.id}: the server could not read a chunk: error {code}, {text}") from error


def stream_rows(connection: Any, shape: TableShape, from_where_sql: str, needed: Set[int]) -> Iterator[list[Any]]:
    """Yield the canonical columns of one SELECT in blocks of about 1 MiB, in the form of `read_chunk`.

    A batch read of a table as a DataFrame uses this. Memory is limited, time is not. All rows belong to one moment. The
    server waits while the caller uses a block (net_write_timeout). Raise ServerUnreachable if the connection breaks,
    TableLocked before the first block, and ChunkFailed if the server fails.
    """
    indexes = sorted(needed)
    types = [describe(shape.columns[index], shape.id) for index in indexes]
    columns = ", ".join(type_.select(quote(type_.column.name)) for type_ in types)
    try:
        with closing(fetch_rows(connection, f"SELECT {columns} {from_where_sql}")) as fetched:
            for rows in fetched:
                read: list[Any] = [None] * len(shape.columns)
                for index, column in zip(indexes, _canonical(shape, types, columns_of(rows, len(types))), strict=True):
                    read[index] = column
                yield read
    except (MySQLError, OSError) as error:
        code, text = error_of(error)
        if is_gone(error):
            raise ServerUnreachable(f"The connection to MySQL was lost: {text}") from None
        if code == ER.LOCK_WAIT_TIMEOUT:
            raise TableLocked(TableLocked.text(shape.id)) from None
        raise ChunkFailed(f"{shape.id}: the server could not read the table: error {code}, {text}") from None


def chunk_select(types: list[ColumnType], from_where_sql: str, timeout_seconds: float) -> str:
    """Return the SELECT of a chunk, which the server ends by itself after `timeout_seconds`.

    https://dev.mysql.com/doc/refman/en/optimizer-hints.html#optimizer-hints-execution-time
    """
    columns = ", ".join(type_.select(quote(type_.column.name)) for type_ in types)
    return f"SELECT /*+ MAX_EXECUTION_TIME({max(1, round(timeout_seconds * 1000))}) */ {columns} {from_where_sql}"


def _canonical(shape: TableShape, types: list[ColumnType], raw: list[Any]) -> list[Any]:
    """Return the columns converted from MySQL's text.

    Raise ChunkFailed for a value that is not of the column's type.
    """
    columns = []
    for type_, values in zip(types, raw, strict=True):
        try:
            columns.append(type_.from_text(values))
        except (pa.ArrowInvalid, ValueError) as error:
            raise ChunkFailed(
                f"{shape.id}: column {type_.column.name} has a value that is not {type_.column.type.upper()}: {error}",
                "If the table has changed, it is read again with its new columns. Otherwise please report this.",
            ) from error
    return columns
