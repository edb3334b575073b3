"""A binlog made by hand: events and packets as MySQL writes them, and the dump that a server sends."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import zstandard

from incsnap.binlog.protocol import control_events as kinds
from incsnap.gtid import GtidSet

SID = uuid.UUID("11111111-2222-3333-4444-555555555555")
WRITE, UPDATE, DELETE = 0x1E, 0x1F, 0x20
TS = 1_700_000_000


def packet(payload: bytes, number: int = 0) -> bytes:
    """Return the payload as one packet, or as several if it is longer than 16 MB."""
    out = b""
    while True:
        part, payload = payload[:0xFFFFFF], payload[0xFFFFFF:]
        out += struct.pack("<I", len(part))[:3] + bytes([number & 0xFF]) + part
        number += 1
        if len(part) < 0xFFFFFF:
            return out


def event(kind: int, body: bytes, end: int, *, checksum: bool = True, flags: int = 0, server: int = 7) -> bytes:
    """Return an event with its header. `end` is the event's end in the file; the header holds the low 32 bits."""
    size = 19 + len(body) + 4 * checksum
    raw = struct.pack("<IBIIIH", TS, kind, server, size, end & 0xFFFFFFFF, flags) + body
    return raw + struct.pack("<I", zlib.crc32(raw)) if checksum else raw


def variable(value: int) -> bytes:
    """Return a number in the encoding of MySQL's serialization library."""
    for width in range(1, 9):
        if value < 1 << 7 * width:
            return ((value << width) | ((1 << (width - 1)) - 1)).to_bytes(width, "little")
    return b"\xff" + value.to_bytes(8, "little")


def gtid_body(number: int, ts_us: int, original_us: int | None = None, sid: uuid.UUID = SID) -> bytes:
    body = struct.pack("<B16sqBqq", 1, sid.bytes, number, 2, 0, 1)
    if original_us is None:
        body += ts_us.to_bytes(7, "little")
    else:
        body += (ts_us | 1 << 55).to_bytes(7, "little") + original_us.to_bytes(7, "little")
    return body + b"\x50" + struct.pack("<I", 90704)


def tagged_body(number: int, tag: str, ts_us: int, original_us: int | None = None) -> bytes:
    fields = [(0, variable(1)), (1, b"".join(variable(octet) for octet in SID.bytes)), (2, variable(number << 1))]
    fields += [(3, variable(len(tag)) + tag.encode()), (4, variable(0)), (5, variable(2)), (6, variable(ts_us))]
    if original_us is not None:
        fields.append((7, variable(original_us)))
    fields += [(8, variable(300)), (9, variable(90704))]
    content = b"".join(variable(name) + value for name, value in fields)
    inner = variable(9) + content
    size = len(inner) + 2
    return variable(1) + variable(size) + inner


def query_body(
    sql: str | bytes, database: str = "shop", thread: int = 12, status: bytes = b"\x00\x01\x02\x03\x04"
) -> bytes:
    raw = sql if isinstance(sql, bytes) else sql.encode()
    name = database.encode()
    return struct.pack("<IIBHH", thread, 0, len(name), 0, len(status)) + status + name + b"\0" + raw


def map_body(table_id: int, table: str, database: str = "shop", version: int = 0) -> bytes:
    names = bytes([len(database)]) + database.encode() + b"\0" + bytes([len(table)]) + table.encode() + b"\0"
    return table_id.to_bytes(6, "little") + b"\x01\0" + names + b"\x01\x08\x00\x00" + bytes([version])


def rows_body(table_id: int, content: bytes, *, last: bool = True) -> bytes:
    return table_id.to_bytes(6, "little") + struct.pack("<HH", int(last), 2) + b"\x01\xff\x00" + content


def description_body(*, checksum: bool) -> bytes:
    return struct.pack("<H50sIB", 4, b"9.7.4", TS, 19) + bytes(range(40)) + bytes([int(checksum)])


def rotate_body(file: str, pos: int = 4) -> bytes:
    return struct.pack("<Q", pos) + file.encode()


def heartbeat_body(file: str, pos: int) -> bytes:
    name = file.encode()
    return b"\x01" + bytes([len(name)]) + name + b"\x02\x09\xfe" + struct.pack("<Q", pos) + b"\x00"


def payload_body(inner: bytes, *, compressed: bool) -> bytes:
    content = zstandard.ZstdCompressor().compress(inner) if compressed else inner
    size = b"\xfe" + struct.pack("<Q", len(content))
    kind = b"\x02\x01\x00" if compressed else b"\x02\x03\xfc\xff\x00"
    return kind + b"\x03\x09\xfe" + struct.pack("<Q", len(inner)) + b"\x01\x09" + size + b"\x00" + content


@dataclass
class Logged:
    """A transaction in the log."""

    source: tuple[str, str]  #: server UUID and tag of its GTID
    number: int  #: number of its GTID
    events: list[tuple[int, bytes]]  #: kind and body of each event, with the GTID event
    file: str = ""
    begin: int = 0
    packets: list[bytes] = field(default_factory=list)


class Binlog:
    """A binlog of several files, to which transactions are added."""

    def __init__(self, *, checksum: bool = True, first_pos: int = 4) -> None:
        self.checksum = checksum
        self.file_number = 1
        self.pos = first_pos
        self.entries: list[Logged | tuple[str, int]] = []
        self._numbers: dict[str, int] = {}

    @property
    def file(self) -> str:
        return f"binlog.{self.file_number:06}"

    def add(
        self,
        events: Iterable[tuple[int, bytes]],
        tag: str = "",
        number: int | None = None,
        gtid: bytes = b"",
        original_us: int | None = None,
    ) -> Logged:
        """Append a transaction. `gtid` replaces the body of its GTID event.

        `original_us`: commit time on another server, 0 if it is unknown, None if the transaction is of this server.
        """
        number = number or self._numbers.get(tag, 0) + 1
        self._numbers[tag] = number
        ts_us = TS * 1_000_000 + number
        name = (kinds.GTID, gtid or gtid_body(number, ts_us, original_us))
        if tag:
            name = (kinds.GTID_TAGGED, tagged_body(number, tag, ts_us, original_us))
        logged = Logged((str(SID), tag), number, [name, *events], self.file, self.pos)
        for kind, body in logged.events:
            self.pos += 19 + len(body) + 4 * self.checksum
            logged.packets.append(packet(b"\0" + event(kind, body, self.pos, checksum=self.checksum)))
        self.entries.append(logged)
        return logged

    def rotate(self) -> None:
        """Begin the next file."""
        self.entries.append((f"binlog.{self.file_number + 1:06}", self.pos))
        self.file_number += 1
        self.pos = 4

    def made_up(self, kind: int, body: bytes) -> bytes:
        """Return a packet with an artificial event, which is in no file."""
        return packet(b"\0" + event(kind, body, 0, checksum=self.checksum, flags=0x20))

    def dump(self, delivered: GtidSet) -> Iterator[bytes]:
        """Yield the packets that a server sends to a replica which has the transactions `delivered`."""
        yield self.made_up(kinds.ROTATE, rotate_body("binlog.000001"))
        yield packet(b"\0" + event(kinds.FORMAT_DESCRIPTION, description_body(checksum=self.checksum), 0))
        skipped: tuple[str, int] | None = None
        for entry in self.entries:
            if isinstance(entry, tuple):
                end = entry[1] + 19 + 8 + len(entry[0]) + 4 * self.checksum
                yield packet(b"\0" + event(kinds.ROTATE, rotate_body(entry[0]), end, checksum=self.checksum))
                yield self.made_up(kinds.ROTATE, rotate_body(entry[0]))
                skipped = None
                continue
            end = entry.begin + sum(19 + len(body) + 4 * self.checksum for _, body in entry.events)
            if (entry.source, entry.number) in delivered:
                skipped = (entry.file, end)
                continue
            if skipped is not None:
                yield self.made_up(kinds.HEARTBEAT_V2, heartbeat_body(*skipped))
                skipped = None
            yield from entry.packets
        yield self.made_up(kinds.HEARTBEAT_V2, heartbeat_body(self.file, self.pos))


def xa(verb: str, name: str = "61", format_id: int = 1) -> tuple[int, bytes]:
    """Return the event of `XA verb` for the transaction with that name (hexadecimal digits)."""
    return kinds.QUERY, query_body(f"XA {verb} X'{name}',X'',{format_id}")


def xa_prepare(name: str = "61", *, one_phase: bool = False, format_id: int = 1) -> tuple[int, bytes]:
    data = bytes.fromhex(name)
    return kinds.XA_PREPARE, struct.pack("<?III", one_phase, format_id, len(data), 0) + data


BEGIN = (kinds.QUERY, query_body("BEGIN"))
XID = (kinds.XID, struct.pack("<Q", 99))


def compressed(events: Iterable[tuple[int, bytes]], *, zstd: bool = True) -> tuple[int, bytes]:
    """Return the events as one payload event. Inside it they have neither checksums nor positions."""
    inner = b"".join(event(kind, body, 0, checksum=False) for kind, body in events)
    return kinds.TRANSACTION_PAYLOAD, payload_body(inner, compressed=zstd)
