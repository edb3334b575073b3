"""Tests of the framer: events in a stream of packets."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol.dump_connection import ConnectionLost, server_error
from incsnap.binlog.protocol.frames import Framer
from incsnap.errors import BinlogError, ConfigError, GtidsPurged, OffsetError, PreflightFailed
from tests.support.binlog_bytes import event, packet

EVENTS = [bytes([n]) * (20 + 7 * n) for n in range(1, 9)]


def framed(chunks: list[bytes]) -> list[bytes]:
    framer = Framer()
    events = []
    for chunk in chunks:
        for block in framer.feed(chunk):
            events += [
                block.data[begin:end] for begin, end in zip(block.starts.tolist(), block.ends.tolist(), strict=True)
            ]
    return events


def test_events_are_found_however_the_bytes_arrive() -> None:
    stream = b"".join(packet(b"\0" + event) for event in EVENTS)
    assert framed([stream]) == EVENTS
    for size in (1, 2, 3, 5, 31, 200):
        assert framed([stream[at : at + size] for at in range(0, len(stream), size)]) == EVENTS


@pytest.mark.parametrize("size", [0xFFFFFF - 2, 0xFFFFFF - 1, 0xFFFFFF, 2 * 0xFFFFFF + 10])
def test_an_event_longer_than_a_packet_is_put_together(size: int) -> None:
    long = bytes(range(250)) * (size // 250 + 1)
    long = long[:size]
    stream = b"".join(packet(b"\0" + event) for event in (EVENTS[0], long, EVENTS[1]))
    step = 1 << 20
    assert framed([stream[at : at + step] for at in range(0, len(stream), step)]) == [EVENTS[0], long, EVENTS[1]]
    assert framed([stream]) == [EVENTS[0], long, EVENTS[1]]


def test_a_long_compressed_transaction_that_finds_no_room_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(BinlogError, match=r"more than 16 MB cannot be kept in .*gone") as refused:
        framed([packet(b"\0" + event(kinds.TRANSACTION_PAYLOAD, bytes(0xFFFFFF), 0))])
    assert "TMPDIR" in refused.value.hint


def test_an_error_packet_is_raised_after_the_events_before_it() -> None:
    framer = Framer()
    error = b"\xff" + (1236).to_bytes(2, "little") + b"#HY000Cannot replicate because the source purged required logs"
    blocks = framer.feed(packet(b"\0" + EVENTS[0]) + packet(error))
    assert len(next(blocks).starts) == 1
    with pytest.raises(GtidsPurged, match="purged"):
        next(blocks)


def test_the_end_of_the_stream_is_a_lost_connection() -> None:
    with pytest.raises(ConnectionLost):
        framed([packet(b"\xfe\0\0\0\0")])


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (1317, "Query execution was interrupted", ConnectionLost),
        (1053, "Server shutdown in progress", ConnectionLost),
        (1789, "The source has purged required GTIDs", GtidsPurged),
        (1236, "A replica with the same server_uuid/server_id as this replica has connected", ConfigError),
        (1236, "Replica has more GTIDs than the source has", OffsetError),
        (1227, "Access denied; you need REPLICATION SLAVE", PreflightFailed),
        (1236, "log event entry exceeded max_allowed_packet", BinlogError),
    ],
)
def test_error_packets_say_what_to_do(code: int, message: str, expected: type[Exception]) -> None:
    error = server_error(code, message)
    assert type(error) is expected
    assert message in str(error)


def test_a_taken_server_id_names_the_setting() -> None:
    error = server_error(1236, "A slave with the same server_uuid/server_id as this slave has connected to the master")
    assert isinstance(error, ConfigError)
    assert "database.server.id" in error.hint
