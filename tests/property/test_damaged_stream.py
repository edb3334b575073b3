"""Tests of a damaged stream: reading it ends, and only a beginning of what the server wrote comes out.

With checksums this holds for any damage. Without checksums, damage inside an event's own bytes cannot be recognized.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol.dump_connection import ConnectionLost
from incsnap.binlog.table_rows import table_rows
from incsnap.errors import IncsnapError
from incsnap.gtid import GtidSet
from tests.support.binlog_bytes import (
    BEGIN,
    DELETE,
    UPDATE,
    WRITE,
    XID,
    Binlog,
    compressed,
    map_body,
    packet,
    query_body,
    rows_body,
)
from tests.support.stream_in_memory import START, Stream, rows_of

Rows = list[tuple[str, int, bytes, bytes]]


def log_of_everything(*, checksum: bool = True) -> Binlog:
    log = Binlog(checksum=checksum)
    orders, lines = (kinds.TABLE_MAP, map_body(5, "orders")), (kinds.TABLE_MAP, map_body(6, "lines"))
    log.add([BEGIN, orders, (WRITE, rows_body(5, b"one")), XID])
    log.add([BEGIN, orders, lines, (UPDATE, rows_body(5, b"two")), (DELETE, rows_body(6, b"three")), XID])
    log.add([(kinds.QUERY, query_body("ALTER TABLE orders ADD x int"))])
    log.add([BEGIN, (kinds.TABLE_MAP, map_body(7, "orders", version=1)), (WRITE, rows_body(7, b"four" * 50)), XID])
    log.add([compressed([BEGIN, lines, (WRITE, rows_body(6, b"five" * 20)), (WRITE, rows_body(6, b"six")), XID])])
    log.rotate()
    log.add([BEGIN, (kinds.TABLE_MAP, map_body(5, "orders")), (WRITE, rows_body(5, b"seven")), XID], tag="blue")
    log.add([BEGIN, (kinds.TABLE_MAP, map_body(9, "x_excluded")), (WRITE, rows_body(9, b"eight")), XID])
    log.add([compressed([BEGIN, lines, (WRITE, rows_body(6, b"nine")), XID], zstd=False)])
    return log


def read(chunks: Iterable[bytes], *, checksum: bool = True, damaged: str = "fail") -> tuple[Rows, bool]:
    """Return the rows that came out, and whether the reading ended with an error."""
    stream = Stream(checksum=checksum)
    stream.reader._damaged = damaged
    failed = False
    try:
        stream.feed(chunks)
    except (IncsnapError, ConnectionLost):
        failed = True
    end, _ = stream.cut(START)
    slices = stream.slices(START, end)
    if not checksum and not failed:  # a table map may be damaged, and then a rows event does not find its map
        with suppress(IncsnapError):
            for one in slices:
                table_rows(one, ((255, "utf8mb4"),))
        return [], failed
    return ([] if failed and not checksum else rows_of(slices)), failed


WHOLE = b"".join(log_of_everything().dump(GtidSet()))
BARE = b"".join(log_of_everything(checksum=False).dump(GtidSet()))
RIGHT, _ = read([WHOLE])

changes = st.lists(st.tuples(st.integers(0, len(BARE) - 1), st.integers(1, 255)), min_size=1, max_size=4)
chunk_sizes = st.sampled_from([1 << 20, 500, 37])


def damage(raw: bytes, where: list[tuple[int, int]], cut: int) -> bytes:
    changed = bytearray(raw)
    for place, mask in where:
        changed[place % len(raw)] ^= mask
    return bytes(changed[: len(raw) - cut])


def chunked(raw: bytes, size: int) -> list[bytes]:
    return [raw[at : at + size] for at in range(0, len(raw), size)]


def test_the_undamaged_stream_is_read_whole() -> None:
    assert len(RIGHT) == 8
    assert read(chunked(WHOLE, 37)) == (RIGHT, False)


@given(changes, st.integers(0, 300), chunk_sizes)
def test_with_checksums_only_right_rows_come_out_of_a_damaged_stream(
    where: list[tuple[int, int]], cut: int, size: int
) -> None:
    rows_read, _ = read(chunked(damage(WHOLE, where, cut), size))
    assert rows_read == RIGHT[: len(rows_read)]


@given(changes, chunk_sizes, st.sampled_from(["warn", "skip"]))
def test_where_damaged_rows_events_may_be_left_out_the_others_are_right(
    where: list[tuple[int, int]], size: int, mode: str
) -> None:
    rows_read, _ = read(chunked(damage(WHOLE, where, 0), size), damaged=mode)
    rest = iter(RIGHT)
    assert all(row in rest for row in rows_read)


@given(changes, st.integers(0, 300), chunk_sizes)
def test_without_checksums_a_damaged_stream_ends_in_our_errors(
    where: list[tuple[int, int]], cut: int, size: int
) -> None:
    read(chunked(damage(BARE, where, cut), size), checksum=False)


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_end_in_our_errors(raw: bytes, checksum: bool) -> None:
    read([raw], checksum=checksum)
    read([packet(b"\0" + raw)], checksum=checksum)


@given(st.sampled_from(range(256)), st.binary(max_size=120))
def test_an_event_of_any_kind_with_any_body_ends_in_our_errors(kind: int, body: bytes) -> None:
    log = Binlog(checksum=False)
    log.add([(kind, body)])
    log.add([BEGIN, (kinds.TABLE_MAP, map_body(5, "orders")), (kind, body), XID])
    read(log.dump(GtidSet()), checksum=False)


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF, 19, 18, 0])
def test_a_length_that_is_not_the_events_own_is_refused(size: int) -> None:
    raw = bytearray(WHOLE)
    at = WHOLE.index(rows_body(5, b"one")) - 19
    raw[at + 9 : at + 13] = struct.pack("<I", size)
    assert read([bytes(raw)]) == ([], True)
    # In a compressed transaction too, where an event has neither a packet around it nor a checksum after it.
    log = Binlog(checksum=False)
    kind, body = compressed(
        [BEGIN, (kinds.TABLE_MAP, map_body(5, "orders")), (WRITE, rows_body(5, b"one"))], zstd=False
    )
    inner = bytearray(body)
    at = body.index(rows_body(5, b"one")) - 19
    inner[at + 9 : at + 13] = struct.pack("<I", size)
    log.add([(kind, bytes(inner))])
    assert read(log.dump(GtidSet()), checksum=False)[1]


@pytest.mark.parametrize("length", [1 << 60, (1 << 64) - 1, 1 << 31])
def test_a_payload_of_an_impossible_length_takes_no_memory(length: int) -> None:
    body = b"\x02\x01\x00" + b"\x03\x09\xfe" + struct.pack("<Q", length) + b"\x01\x09\xfe" + struct.pack("<Q", length)
    log = Binlog(checksum=False)
    log.add([(kinds.TRANSACTION_PAYLOAD, body + b"\x00" + b"\x28\xb5\x2f\xfd")])
    log.add([(kinds.TRANSACTION_PAYLOAD, b"\x01\xfe" + struct.pack("<Q", length) + b"x")])
    assert read(log.dump(GtidSet()), checksum=False)[1]


def test_the_place_of_a_damaged_event_is_named() -> None:
    log = log_of_everything()
    entry = next(entry for entry in log.entries if not isinstance(entry, tuple) and entry.number == 2)
    at = WHOLE.index(rows_body(5, b"two"))
    raw = WHOLE[: at + 12] + b"\xee" + WHOLE[at + 13 :]
    before = sum(19 + len(body) + 4 for _, body in entry.events[:4])
    with pytest.raises(IncsnapError, match=rf"binlog\.000001:{entry.begin + before}: .*checksum"):
        Stream().feed([raw])
