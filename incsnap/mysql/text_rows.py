"""Rows of a SELECT as packets in large blocks, and their columns by the lock-step scan.

PyMySQL makes a Python object per value (90 thousand rows/s). Here it still sends the statement and reads the column
definitions, so authentication, TLS and session stay its business; the row packets are then read from its stream in
blocks, framed in place (0.1 µs a row) and cut into columns by NumPy. Memory is bounded by the block, whatever the
result is; only a row that is larger gets a block of its own.
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset.html
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pymysql import err
from pymysql.connections import MySQLResult
from pymysql.constants import COMMAND, CR

from incsnap.columns.cursors import lenenc_columns
from incsnap.columns.gather import binary
from incsnap.columns.packets import PAD, Packets, Positions

#: Large enough that NumPy's calls cost nothing by the row, small enough to stay near the processor's caches.
BLOCK_BYTES = 1 << 20

_LARGEST = 0xFFFFFF
_EOF, _ERR = 0xFE, 0xFF
#: An EOF packet is shorter than this; a row that begins with 0xFE (a value of 16 MiB or more) never is.
_EOF_BYTES = 9
_MORE_RESULTS = 0x0008
_header = struct.Struct("<I").unpack_from


@dataclass(frozen=True, slots=True, eq=False)
class TextRows:
    """Row ``i`` is ``packets.data[starts[i] : ends[i]]``: length-encoded values, one after another."""

    packets: Packets
    starts: Positions
    ends: Positions

    def __len__(self) -> int:
        return len(self.starts)


def columns_of(rows: TextRows, count: int) -> list[Any]:
    """The ``count`` columns of the rows as ``pa.binary()``, null for NULL. Raises ``pymysql.err.InternalError`` for
    damage."""
    columns, cursors = lenenc_columns(rows.packets, rows.starts, count)
    if not np.array_equal(cursors, rows.ends):
        raise err.InternalError(f"a row does not consist of {count} length-encoded values")
    return [binary(column) for column in columns]


def fetch_rows(connection: Any, sql: str, *, block_bytes: int = BLOCK_BYTES) -> Generator[TextRows, None, None]:
    """The rows of one SELECT, in blocks of about ``block_bytes``; nothing where it has none.

    Raises PyMySQL's errors, also when the server fails in the middle of the rows; after a server's error the
    connection is usable. It is closed when it breaks, and when the caller leaves before the end: what is still to come
    may be of any size.
    """
    connection._execute_command(COMMAND.COM_QUERY, sql)
    result = MySQLResult(connection)
    result.init_unbuffered_query()
    # The result must not read the rest by itself when it is forgotten.
    result.unbuffered_active = False
    stream = _Stream(connection, block_bytes)
    try:
        yield from stream.blocks()
    finally:
        if not stream.finished:
            connection._force_close()


class _Stream:
    """Where in the result we are: one block being filled, and the packets found in it."""

    def __init__(self, connection: Any, block_bytes: int) -> None:
        self._connection = connection
        self._block_bytes = block_bytes
        self._data = np.empty(block_bytes + PAD, np.uint8)
        self._filled = 0
        #: First byte not yet framed.
        self._position = 0
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._early: bytes | None = None
        self.finished = False

    def blocks(self) -> Iterator[TextRows]:
        while not self.finished:
            self._receive()
            end = self._frame()
            if end is not None or (self._filled == len(self._data) - PAD and self._starts):
                if self._starts:
                    yield self._cut()
                if end is not None:
                    self._finish(end)
            elif self._filled == len(self._data) - PAD:
                grown = np.empty(2 * len(self._data), np.uint8)
                grown[: self._filled] = self._data[: self._filled]
                self._data = grown

    def _receive(self) -> None:
        room = self._data.data[self._filled : len(self._data) - PAD]
        stream = self._connection._rfile
        try:
            if self._early is None:
                # What PyMySQL's reader has taken from the socket already, at most its 8 KiB; from here on we go past
                # it.
                self._early = stream.read(len(stream.peek()))
            if self._early:
                count = min(len(self._early), len(room))
                room[:count], self._early = self._early[:count], self._early[count:]
            else:
                count = stream.raw.readinto(room)
        except OSError as error:
            raise self._lost(f" ({error})") from error
        if not count:
            raise self._lost()
        self._filled += count

    def _lost(self, why: str = "") -> err.OperationalError:
        self._connection._force_close()
        return err.OperationalError(CR.CR_SERVER_LOST, f"Lost connection to MySQL server during query{why}")

    def _frame(self) -> bytes | None:
        """Notes every whole row in the block; gives the last packet (EOF or ERR) once it is there."""
        data, filled, position = self._data.data, self._filled, self._position
        starts, ends = self._starts, self._ends
        while position + 4 <= filled:
            length = _header(data, position)[0] & _LARGEST
            start = position + 4
            end = start + length
            if end > filled:
                break
            if length < _EOF_BYTES and data[start] == _EOF:
                self._position = end
                return bytes(data[start:end])
            if length == _LARGEST:
                joined = self._join(start)
                if joined is None:
                    break
                row_end, position = joined
                starts.append(start)
                ends.append(row_end)
                continue
            starts.append(start)
            ends.append(end)
            position = end
        self._position = position
        # An error is the last that the server sends: only the last packet received can be one.
        if starts and position == filled and data[starts[-1]] == _ERR:
            start, end = starts.pop(), ends.pop()
            return bytes(data[start:end])
        return None

    def _join(self, start: int) -> tuple[int, int] | None:
        """A row of 16 MiB or more comes in several packets: makes one of them, once all are there.

        Gives the end of the row and the beginning of the next packet. Nothing is moved before all parts are there.
        """
        parts, position, length = [], start - 4, _LARGEST
        while length == _LARGEST:
            if position + 4 > self._filled:
                return None
            length = _header(self._data.data, position)[0] & _LARGEST
            parts.append((position + 4, position + 4 + length))
            position += 4 + length
            if position > self._filled:
                return None
        row_end = parts[0][1]
        for begin, end in parts[1:]:
            self._data[row_end : row_end + end - begin] = self._data[begin:end].copy()
            row_end += end - begin
        return row_end, position

    def _cut(self) -> TextRows:
        """The rows found, on a block of their own; what is behind them begins the next block."""
        rest = self._data[self._position : self._filled]
        following = np.empty(max(self._block_bytes, 2 * len(rest)) + PAD, np.uint8)
        following[: len(rest)] = rest
        packets = Packets.padded(self._data[: self._position + PAD])
        rows = TextRows(packets, np.array(self._starts, np.int64), np.array(self._ends, np.int64))
        self._data, self._filled, self._position = following, len(rest), 0
        self._starts, self._ends = [], []
        return rows

    def _finish(self, packet: bytes) -> None:
        if self._filled != self._position:
            raise err.InternalError("the server sent more than one result")
        if packet[0] == _ERR:
            self.finished = True
            err.raise_mysql_exception(packet)
        status = int.from_bytes(packet[3:5], "little")
        if status & _MORE_RESULTS:
            raise err.InternalError("the server announced a second result")
        self._connection.server_status = status
        self.finished = True
