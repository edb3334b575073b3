"""Every event that is neither a row nor a statement: transactions' names, files, heartbeats.

Each function takes an event's body: what follows the 19-byte header, without the checksum.
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import zstandard

from incsnap.columns.length_encoded import length_encoded
from incsnap.errors import BinlogError
from incsnap.gtid import Source

QUERY: Final = 0x02
STOP: Final = 0x03
ROTATE: Final = 0x04
FORMAT_DESCRIPTION: Final = 0x0F
XID: Final = 0x10
EXECUTE_LOAD_QUERY: Final = 0x12
TABLE_MAP: Final = 0x13
INCIDENT: Final = 0x1A
HEARTBEAT: Final = 0x1B
ROWS_QUERY: Final = 0x1D
GTID: Final = 0x21
ANONYMOUS_GTID: Final = 0x22
PREVIOUS_GTIDS: Final = 0x23
VIEW_CHANGE: Final = 0x25
XA_PREPARE: Final = 0x26
TRANSACTION_PAYLOAD: Final = 0x28
HEARTBEAT_V2: Final = 0x29
GTID_TAGGED: Final = 0x2A

ROWS: Final = (0x17, 0x18, 0x19, 0x1E, 0x1F, 0x20, 0x27)
"""Write, update, delete in versions 1 and 2, and the partial update."""

STATEMENT_DETAILS: Final = (0x05, 0x09, 0x0B, 0x0D, 0x0E, 0x11)
"""Variables, seeds and files that a statement logged as text refers to."""

IGNORABLE_FLAG: Final = 0x80
"""Set by the server on an event that a reader may skip when it does not know the type."""

HEADER: Final = 19
CHECKSUM: Final = 4

INFLATED_BLOCK: Final = 1 << 20
"""Bytes inflated at a time: a compressed transaction is never held whole."""


@dataclass(frozen=True, slots=True)
class Gtid:
    """A transaction's name, and when it was committed where it was first executed (µs since 1970; 0: unknown)."""

    source: Source
    number: int
    ts_us: int

    def __str__(self) -> str:
        return gtid_text(self.source, self.number)


def gtid_text(source: Source, number: int) -> str:
    """As MySQL writes it: ``uuid:number`` or ``uuid:tag:number``."""
    sid, tag = source
    return f"{sid}:{tag}:{number}" if tag else f"{sid}:{number}"


def read_tagged_gtid(body: bytes) -> Gtid:
    """0x2A, in the format of MySQL's serialization library: version, size, last field that must be known, then pairs of
    field number and value in rising order. Fields: 0 flags, 1 uuid (16 numbers), 2 number, 3 tag, 4 and 5 logical
    clock, 6 immediate and 7 original timestamp (left out when equal), 8 length ... (libs/mysql/serialization/readme.md)
    """
    version, at = _variable(body, 0)
    if version != 1:
        raise BinlogError(f"a tagged GTID event of the unknown format {version}", "Use a newer incsnap.")
    size, at = _variable(body, at)
    end = min(size, len(body))
    _, at = _variable(body, at)
    sid, number, tag, immediate, original = b"", 0, "", 0, 0
    while at < end:
        field, at = _variable(body, at)
        if field == 1:
            octets = bytearray()
            for _ in range(16):
                octet, at = _variable(body, at)
                octets.append(octet)
            sid = bytes(octets)
        elif field == 3:
            length, at = _variable(body, at)
            tag = body[at : at + length].decode("ascii")
            at += length
        elif field in (0, 2, 4, 5, 6, 7):
            value, at = _variable(body, at)
            if field == 2:
                number = value >> 1  # signed numbers carry their sign in the lowest bit; this one is positive
            elif field == 6:
                immediate = value
            elif field == 7:
                original = value
        else:
            break  # nothing behind these is needed
    if len(sid) != 16 or not number:
        raise BinlogError("a tagged GTID event without uuid or number")
    return Gtid((str(uuid.UUID(bytes=sid)), tag.lower()), number, original or immediate)


def _variable(body: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer and the place behind it: as many bytes as the first has trailing ones, plus one."""
    first = body[at]
    if first == 0xFF:
        return int.from_bytes(body[at + 1 : at + 9], "little"), at + 9
    ones = (~first & (first + 1)).bit_length() - 1
    return int.from_bytes(body[at : at + ones + 1], "little") >> (ones + 1), at + ones + 1


def read_rotate(body: bytes) -> tuple[str, int]:
    """0x04. The next file and the position in it, real or made up by the server at the start of each file."""
    return body[8:].rstrip(b"\0").decode("utf-8", "replace"), int.from_bytes(body[:8], "little")


def read_rows_query(body: bytes) -> bytes:
    """0x1D. The statement behind the rows that follow, in its session's character set, which is not told. The byte
    before it is its length, but of one byte only: no use."""
    return body[1:]


def time_of(event: bytes) -> int:
    """Seconds since 1970 by the server's clock. Of a format description: when the file was begun."""
    return int.from_bytes(event[:4], "little")


def has_checksum(event: bytes) -> bool:
    """0x0F, whole: its last four bytes are its own CRC32, the byte before them is the algorithm of the events behind it
    (0 none, 1 CRC32). BinlogError where it is damaged.

    The server brings the CRC32 up to date only where the algorithm is 1. That it would be right for that algorithm
    betrays a 1 that was turned into a 0.
    """
    algorithm = event[-5]
    as_1 = zlib.crc32(event[:-5] + b"\x01") == int.from_bytes(event[-4:], "little")
    if algorithm > 1 or as_1 != (algorithm == 1):
        raise BinlogError("the event that describes the binlog's format is damaged")
    return algorithm == 1


def read_heartbeat(body: bytes) -> tuple[str, int]:
    """0x29. Pairs of type, length, value: 1 the file, 2 the position (64 bits, length-encoded), 0 the end."""
    file, pos, at = "", 0, 0
    while at < len(body):
        kind, at = length_encoded(body, at)
        if kind == 0:
            break
        length, at = length_encoded(body, at)
        if kind == 1:
            file = body[at : at + length].decode("utf-8", "replace")
        elif kind == 2:
            pos, _ = length_encoded(body, at)
        at += length
    return file, pos


def read_payload(body: bytes | memoryview) -> Iterator[bytes]:
    """0x28. The events of a compressed transaction, as blocks of bytes cut anywhere.

    Pairs of type, length, value: 1 size of the payload, 2 compression (0 zstd, 255 none), 3 size inflated, 0 the end.
    """
    compression, at = 0, 0
    while True:
        kind, at = length_encoded(body, at)
        if kind == 0:
            break
        length, at = length_encoded(body, at)
        if kind == 2:
            compression, _ = length_encoded(body, at)
        at += length
    if compression == 255:
        for place in range(at, len(body), INFLATED_BLOCK):
            yield bytes(body[place : place + INFLATED_BLOCK])
    elif compression == 0:
        try:
            with zstandard.ZstdDecompressor().stream_reader(memoryview(body)[at:], read_across_frames=True) as reader:
                while block := reader.read(INFLATED_BLOCK):
                    yield block
        except zstandard.ZstdError as broken:
            raise BinlogError(f"a compressed transaction cannot be inflated: {broken}") from broken
    else:
        raise BinlogError(
            f"a transaction compressed in the unknown way {compression}", "Use a newer incsnap, or no compression."
        )
