"""Packets out of a byte stream: where each event begins and ends, without a Python object for any of them.

A packet is a length of three bytes, a sequence number, and the payload; in a dump the payload is one byte 0x00 and one
event. A payload of 16,777,215 bytes goes on in the next packet.
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_packets.html

Only the chain of lengths is followed here, 0.1 µs a packet; everything else is read from whole blocks with NumPy.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from incsnap.binlog.protocol.dump_connection import ConnectionLost, server_error
from incsnap.binlog.protocol.long_event import Bytes, LongEvent

PAD = bytes(128)
"""Behind every block, so that a wide gather at its last event stays inside."""

_LENGTH = struct.Struct("<I")
_FULL = 0xFFFFFF

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Whole events in ``data``: event *i* is ``data[starts[i]:ends[i]]``, checksum included. ``data`` ends with PAD."""

    data: Bytes
    starts: Longs
    ends: Longs


def gather(data: Bytes, record: np.dtype[Any], at: Longs) -> npt.NDArray[Any]:
    """The records of that type that lie at those (unaligned) bytes of ``data``, one copy for all of them."""
    # Plain bytes are copied record by record; a record type would be copied field by field.
    plain = np.dtype((np.void, record.itemsize))
    return np.ndarray((len(data) - record.itemsize + 1,), plain, data, 0, (1,))[at].view(record)


class Framer:
    """Cuts what ``feed`` is given into blocks of whole events; keeps what is incomplete for the next time."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._have = 0
        self._need = 4
        #: What has come of an event that spans several packets.
        self._long: LongEvent | None = None

    def feed(self, chunk: bytes) -> Iterator[Block]:
        """Blocks of events. Raises what an error packet means, ``ConnectionLost`` for the end of the stream."""
        self._rest.append(chunk)
        self._have += len(chunk)
        if self._have < self._need:  # do not join again and again while a long packet comes in
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
        """The places of the complete packets from ``at`` on, up to a long event's; and the place behind them."""
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


def _end_of_stream(payload: bytes) -> None:
    if payload[:1] == b"\xff":
        code = int.from_bytes(payload[1:3], "little")
        message = payload[9:] if payload[3:4] == b"#" else payload[3:]
        raise server_error(code, message.decode("utf-8", "replace"))
    if payload[:1] == b"\xfe":
        raise ConnectionLost("the server ended the stream")
    raise ConnectionLost(f"a packet begins with the unknown byte {payload[:1].hex()}")
