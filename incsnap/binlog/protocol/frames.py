"""The framer: it finds the events in a stream of packets, without a Python object for each event.

A packet is a length of three bytes, a sequence number and the payload. In a dump the payload is one byte 0x00 and one
event. A payload of 16,777,215 bytes continues in the next packet.
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_packets.html

This module follows only the chain of lengths, at 0.1 µs a packet. Everything else is read from whole blocks with NumPy.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from incsnap.binlog.protocol.dump_connection import ConnectionLost, server_error
from incsnap.binlog.protocol.long_event import Bytes, LongEvent
from incsnap.errors import BinlogError

#: Zero bytes behind every block. A wide gather at the block's last event reads past the event, and must stay in the
#: buffer.
PAD = bytes(128)

_LENGTH = struct.Struct("<I")
#: Bytes of an event's header, and where its length is in it.
_HEADER, _LENGTH_AT = 19, 9
_FULL = 0xFFFFFF

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A number of whole events."""

    data: Bytes  #: event i is `data[starts[i]:ends[i]]`, checksum included; `data` ends with PAD
    starts: Longs  #: first byte of each event in `data`
    ends: Longs  #: end of each event in `data`


def gather(data: Bytes, record: np.dtype[Any], at: Longs) -> npt.NDArray[Any]:
    """Return the records of type `record` that begin at the bytes `at` of `data`, as one array.

    One call reads, for instance, the headers of all events of a block. The bytes need not be aligned.
    """
    # NumPy copies plain bytes record by record, but a record type field by field.
    plain = np.dtype((np.void, record.itemsize))
    return np.ndarray((len(data) - record.itemsize + 1,), plain, data, 0, (1,))[at].view(record)


def inflated_blocks(inflated: Iterable[bytes], where: str) -> Iterator[Block]:
    """Yield the events of a compressed transaction in blocks. `inflated` holds their bytes, divided at any place.

    The events have no checksums. Raise BinlogError, which begins with `where`, if an event is damaged or cut off.
    """
    pending: list[bytes] = []
    have, need = 0, _HEADER
    for each in inflated:
        pending.append(each)
        have += len(each)
        if have < need:  # a large event comes in many pieces: joining them each time would be quadratic
            continue
        rest = b"".join(pending)
        starts = []
        at, end = 0, len(rest)
        following = end
        while at + _HEADER <= end:
            following = at + _LENGTH.unpack_from(rest, at + _LENGTH_AT)[0]
            if following > end:
                break
            if following < at + _HEADER:
                raise BinlogError(f"{where}: a compressed event is shorter than its header")
            starts.append(at)
            at = following
        if starts:
            places = np.array([*starts, at])
            yield Block(rest[:at] + PAD, places[:-1], places[1:])
        pending, have = [rest[at:]], end - at
        need = max(following - at, _HEADER)
    if have:
        raise BinlogError(f"{where}: a compressed transaction is cut off")


class Framer:
    """A converter from chunks of bytes to blocks of whole events. It keeps an incomplete event for the next chunk."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._have = 0
        self._need = 4
        #: The packets so far of an event that spans several packets.
        self._long: LongEvent | None = None

    def feed(self, chunk: bytes) -> Iterator[Block]:
        """Yield the blocks of events in a chunk.

        Raise ConnectionLost at the end of the stream. An error packet raises the error that it means (see
        `server_error`).
        """
        self._rest.append(chunk)
        self._have += len(chunk)
        if self._have < self._need:  # a long packet comes in many chunks: joining them each time would be quadratic
            return
        data = b"".join((*self._rest, PAD))
        end = self._have
        at = 0
        while True:
            packets, at_next = self._chain(data, at, end)
            if packets:
                yield from self._block(data, np.frombuffer(packets, np.int64), at_next)
            at = at_next
            size = _LENGTH.unpack_from(data, at)[0] & _FULL
            if end - at < 4 or end - at < size + 4:
                break
            at += 4 + size
            yield from self._long_event(data[at - size : at], last=size < _FULL)
        self._rest = [data[at:end]]
        self._have = end - at
        self._need = size + 4 if self._have >= 4 else 4

    def _chain(self, data: bytes, at: int, end: int) -> tuple[array[int], int]:
        """Return the places of the complete packets from `at` on, and the place after them.

        Stop at an event of several packets.
        """
        packets = array("q")
        if self._long is not None:
            return packets, at
        append = packets.append
        unpack = _LENGTH.unpack_from
        last_header = end - 4
        while at <= last_header:
            size = unpack(data, at)[0] & _FULL
            following = at + 4 + size
            if following > end or size == _FULL:
                break
            append(at)
            at = following
        return packets, at

    def _block(self, data: Bytes, packets: Longs, end: int) -> Iterator[Block]:
        marks = np.frombuffer(data, np.uint8)[packets + 4]
        count = len(packets)
        if marks.any():
            count = int(np.flatnonzero(marks)[0])
        ends = np.append(packets[1:], end)
        if count:
            yield Block(data, packets[:count] + 5, ends[:count])
        if count < len(packets):
            _end_of_stream(data[packets[count] + 4 : ends[count]])

    def _long_event(self, payload: bytes, *, last: bool) -> Iterator[Block]:
        if self._long is None:
            self._long = LongEvent(payload)
        else:
            self._long.add(payload)
        if last:
            data = self._long.whole(PAD)
            self._long = None
            yield from self._block(data, np.zeros(1, np.int64), len(data) - len(PAD))


def blocks_until(ended: Callable[[], bool], read: Callable[[], bytes], closed: Callable[[], bool]) -> Iterator[Block]:
    """Yield the blocks of events that a search reads beside the tail, until `ended` returns True.

    `read` returns the next bytes of the connection. `ended` is called before each `read`. Raise ConnectionLost if the
    connection breaks, or if `closed` returns True.
    """
    framer = Framer()
    while not ended():
        if closed():
            raise ConnectionLost("closed")
        yield from framer.feed(read())


def _end_of_stream(payload: bytes) -> None:
    """Raise the error that a packet without an event means."""
    if payload[:1] == b"\xff":
        code = int.from_bytes(payload[1:3], "little")
        message = payload[9:] if payload[3:4] == b"#" else payload[3:]
        raise server_error(code, message.decode("utf-8", "replace"))
    if payload[:1] == b"\xfe":
        raise ConnectionLost("the server ended the stream")
    raise ConnectionLost(f"a packet begins with the unknown byte {payload[:1].hex()}")
