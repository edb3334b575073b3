"""Rows of a SELECT, read as packets in large blocks and cut into columns by NumPy.

PyMySQL makes a Python object for each value and reads 90,000 rows/s. Here PyMySQL only sends the statement and reads
the column definitions, so it still handles authentication, TLS and the session. This module then reads the row packets
from PyMySQL's stream in blocks, finds their ends in place (0.1 µs a row) and cuts them into columns. A block limits the
memory, whatever the size of the result. Only a row that is larger gets its own block.
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
from incsnap.mysql.driver_internals import drop, send_command, stream_of

#: 1 MiB: large enough that NumPy's calls cost nothing for each row, small enough for the processor's caches.
BLOCK_BYTES = 1 << 20

_LARGEST = 0xFFFFFF
_EOF, _ERR = 0xFE, 0xFF
#: An EOF packet is shorter than this. A row that begins with 0xFE (a value of 16 MiB or more) is always longer.
_EOF_BYTES = 9
_MORE_RESULTS = 0x0008
_header = struct.Struct("<I").unpack_from


@dataclass(frozen=True, slots=True, eq=False)
class TextRows:
    """A block of rows. Row `i` is `packets.data[starts[i] : ends[i]]`, a sequence of length-encoded values."""

    packets: Packets  #: all bytes of the block
    starts: Positions  #: first byte of each row
    ends: Positions  #: byte after each row

    def __len__(self) -> int:
        return len(self.starts)


def columns_of(rows: TextRows, count: int) -> list[Any]:
    """Return the `count` columns of the rows as `pa.binary()`, with null for NULL.

    Raise err.InternalError (PyMySQL's) if a row does not have `count` values.
    """
    columns, cursors = lenenc_columns(rows.packets, rows.starts, count)
    if not np.array_equal(cursors, rows.ends):
        raise err.InternalError(f"a row does not consist of {count} length-encoded values")
    return [binary(column) for column in columns]


def fetch_rows(connection: Any, sql: str, *, block_bytes: int = BLOCK_BYTES) -> Generator[TextRows, None, None]:
    """Yield the rows of one SELECT in blocks of about `block_bytes`. Yield nothing if the result is empty.

    Raise PyMySQL's errors, also if the server fails in the middle of the rows. After an error of the server the
    connection can still be used. The connection is closed if it breaks, and if the caller stops before the end, because
    the rest may be of any size.
    """
    send_command(connection, COMMAND.COM_QUERY, sql)
    result = MySQLResult(connection)
    result.init_unbuffered_query()
    # Keep PyMySQL's result object from reading the rest when it is garbage-collected.
    result.unbuffered_active = False
    stream = _Stream(connection, block_bytes)
    try:
        yield from stream.blocks()
    finally:
        if not stream.finished:
            drop(connection)


class _Stream:
    """A reader of one result: the block that is being filled, and the packets found in it."""

    def __init__(self, connection: Any, block_bytes: int) -> None:
        self._connection = connection
        self._block_bytes = block_bytes
        self._data = np.empty(block_bytes + PAD, np.uint8)
        self._filled = 0
        #: The first byte after the packets that were found.
        self._position = 0
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._early: bytes | None = None
        self.finished = False

    def blocks(self) -> Iterator[TextRows]:
        """Yield the rows of the result in blocks."""
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
        """Read bytes from the socket into the block. Raise OperationalError (PyMySQL's) if the connection is lost."""
        room = self._data.data[self._filled : len(self._data) - PAD]
        stream = stream_of(self._connection)
        try:
            if self._early is None:
                # Bytes that PyMySQL's buffered reader already holds, at most 8 KiB. Later reads bypass its buffer.
                self._early = stream.read(len(stream.peek()))
            if self._early:
                count = min(len(self._early), len(room))
                room[:count], self._early = self._early[:count], self._early[count:]
            else:
                count = stream.raw.readinto(room) or 0
        except OSError as error:
            raise self._lost(f" ({error})") from error
        if not count:
            raise self._lost()
        self._filled += count

    def _lost(self, why: str = "") -> err.OperationalError:
        """Close the connection and return the error to raise."""
        drop(self._connection)
        return err.OperationalError(CR.CR_SERVER_LOST, f"Lost connection to MySQL server during query{why}")

    def _frame(self) -> bytes | None:
        """Record all whole rows in the block. Return the last packet (EOF or ERR) if it has arrived, else None."""
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
        # The server sends nothing after an error, so only the last packet received can be one.
        if starts and position == filled and data[starts[-1]] == _ERR:
            start, end = starts.pop(), ends.pop()
            return bytes(data[start:end])
        return None

    def _join(self, start: int) -> tuple[int, int] | None:
        """Join the packets of a row of 16 MiB or more, once all of them have arrived.

        Return the end of the row and the beginning of the next packet. Return None, and move nothing, if a packet is
        missing.
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
        """Return the rows of the block. The bytes after them begin the next block."""
        rest = self._data[self._position : self._filled]
        following = np.empty(max(self._block_bytes, 2 * len(rest)) + PAD, np.uint8)
        following[: len(rest)] = rest
        packets = Packets.padded(self._data[: self._position + PAD])
        rows = TextRows(packets, np.array(self._starts, np.int64), np.array(self._ends, np.int64))
        self._data, self._filled, self._position = following, len(rest), 0
        self._starts, self._ends = [], []
        return rows

    def _finish(self, packet: bytes) -> None:
        """Check the last packet of the result and end the reading. Raise the server's error if it is one."""
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
