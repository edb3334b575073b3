"""Readers of control events: all events that are neither rows nor statements, such as GTIDs, files and heartbeats.

Each function takes an event's body: the bytes after the 19-byte header, without the checksum.
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator
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

#: Types of rows events: write, update and delete in version 1, the same in version 2, and the partial update of JSON.
ROWS: Final = (0x17, 0x18, 0x19, 0x1E, 0x1F, 0x20, 0x27)

#: Types of events with variables, seeds or files. A statement that is logged as text uses them.
STATEMENT_DETAILS: Final = (0x05, 0x09, 0x0B, 0x0D, 0x0E, 0x11)

#: The server sets this flag on an event that a reader may skip if the reader does not know its type.
IGNORABLE_FLAG: Final = 0x80

HEADER: Final = 19
CHECKSUM: Final = 4

#: Most bytes to inflate at once, so that memory never holds a whole compressed transaction.
INFLATED_BLOCK: Final = 1 << 20


def gtid_text(source: Source, number: int) -> str:
    """Return a GTID as MySQL writes it: `uuid:number` or `uuid:tag:number`."""
    sid, tag = source
    return f"{sid}:{tag}:{number}" if tag else f"{sid}:{number}"


def read_tagged_gtid(body: bytes) -> tuple[Source, int, int]:
    """Read an event 0x2A (GTID_TAGGED): return the GTID's source (uuid and tag), the GTID's number, and the time of the
    commit on the server that made the transaction.

    The time is in µs since 1970, or 0 if it is unknown. Raise BinlogError for an unknown format, or if uuid or number
    is missing.

    The body has the format of MySQL's serialization library (libs/mysql/serialization/readme.md). It begins with format
    version, size, and the number of the last field that a reader must know. Pairs of field number and value follow, in
    rising order. Fields: 0 flags, 1 uuid (16 numbers), 2 number, 3 tag, 4 and 5 logical clock, 6 commit time on this
    server, 7 commit time on the first server. Field 7 is left out if it equals field 6.
    """
    version, at = _variable(body, 0)
    if version != 1:
        raise BinlogError(f"a tagged GTID event of the unknown format {version}", "Use a newer incsnap.")
    size, at = _variable(body, at)
    end = min(size, len(body))
    _, at = _variable(body, at)
    sid, tag, numbers = b"", "", dict[int, int]()
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
        elif field <= 7:
            numbers[field], at = _variable(body, at)
        else:
            break  # no later field is needed
    number = numbers.get(2, 0) >> 1  # the lowest bit is the sign, and this number is positive
    if len(sid) != 16 or not number:
        raise BinlogError("a tagged GTID event without uuid or number")
    return (str(uuid.UUID(bytes=sid)), tag.lower()), number, numbers.get(7, numbers.get(6, 0))


def _variable(body: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length integer and the place after it.

    The number of bytes is the number of trailing 1 bits in the first byte, plus one.
    """
    first = body[at]
    if first == 0xFF:
        return int.from_bytes(body[at + 1 : at + 9], "little"), at + 9
    ones = (~first & (first + 1)).bit_length() - 1
    return int.from_bytes(body[at : at + ones + 1], "little") >> (ones + 1), at + ones + 1


def read_rotate(body: bytes) -> tuple[str, int]:
    """Read an event 0x04 (ROTATE): return the next file and the position in it.

    The event is real, or the server invented it for the beginning of a file in a dump.
    """
    return body[8:].rstrip(b"\0").decode("utf-8", "replace"), int.from_bytes(body[:8], "little")


def read_rows_query(body: bytes) -> bytes:
    """Read an event 0x1D (ROWS_QUERY): return the statement of the rows that follow.

    The text is in the character set of its session, which the event does not name. The byte before the text has only
    the lowest 8 bits of its length, so it is not used.
    """
    return body[1:]


def time_of(event: bytes) -> int:
    """Return the event's time, in seconds since 1970 by the server's clock.

    The time of a FORMAT_DESCRIPTION event is the time at which the file was begun.
    """
    return int.from_bytes(event[:4], "little")


def has_checksum(event: bytes) -> bool:
    """Return True if the events after this event 0x0F (FORMAT_DESCRIPTION) have checksums.

    `event` is the whole event. Its last four bytes are its own CRC32. The byte before them is the checksum algorithm (0
    none, 1 CRC32). The server updates the CRC32 only if the algorithm is 1. So a CRC32 that is right for algorithm 1
    shows that an algorithm 0 is damaged. Raise BinlogError if the event is damaged.
    """
    algorithm = event[-5]
    as_1 = zlib.crc32(event[:-5] + b"\x01") == int.from_bytes(event[-4:], "little")
    if algorithm > 1 or as_1 != (algorithm == 1):
        raise BinlogError("the event that describes the binlog's format is damaged")
    return algorithm == 1


def read_heartbeat(body: bytes) -> tuple[str, int]:
    """Read an event 0x29 (HEARTBEAT_V2): return the binlog file and the position that the server has reached.

    The body's fields are: 1 file, 2 position (64 bits, length-encoded). A missing file is returned as "", a missing
    position as 0. The mark at the end of the fields may be missing too.
    """
    fields, _ = _fields(body + b"\0")
    return fields.get(1, b"").decode("utf-8", "replace"), length_encoded(fields.get(2, b"\0"), 0)[0]


def _fields(body: bytes | memoryview) -> tuple[dict[int, bytes], int]:
    """Read fields of type, length and value up to type 0: return type -> value, and the place behind the fields."""
    fields: dict[int, bytes] = {}
    kind, at = length_encoded(body, 0)
    while kind:
        length, at = length_encoded(body, at)
        fields[kind] = bytes(body[at : at + length])
        kind, at = length_encoded(body, at + length)
    return fields, at


def read_payload(body: bytes | memoryview) -> Iterator[bytes]:
    """Read an event 0x28 (TRANSACTION_PAYLOAD): yield the events of a compressed transaction, in blocks of up to 1 MiB.

    A block may end within an event. The fields of the body are: 1 size of the payload, 2 compression (0 zstd, 255
    none), 3 inflated size. Raise BinlogError if the payload is damaged or its compression is unknown.
    """
    fields, at = _fields(body)
    compression, _ = length_encoded(fields.get(2, b"\0"), 0)
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
