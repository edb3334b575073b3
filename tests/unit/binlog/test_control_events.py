"""Tests of the readers of control events."""

from __future__ import annotations

import pytest

from incsnap.binlog.protocol import control_events as kinds
from incsnap.errors import BinlogError
from tests.support import binlog_bytes as made

SID = str(made.SID)


@pytest.mark.parametrize("number", [1, 63, 64, 8191, 2**40, 2**62])
@pytest.mark.parametrize("original", [None, 0, 5, 1_600_000_000_000_002])
def test_a_tagged_gtid_is_read(number: int, original: int | None) -> None:
    gtid = kinds.read_tagged_gtid(made.tagged_body(number, "my_tag", 1_700_000_000_000_001, original))
    assert gtid == ((SID, "my_tag"), number, 1_700_000_000_000_001 if original is None else original)


def test_a_tagged_gtid_written_by_a_server_is_read() -> None:
    # MySQL 9.7.4: SET gtid_next='AUTOMATIC:tagged'; INSERT ...
    body = bytes.fromhex(
        "028200000002b503450359035d0395034d0222c50355023404f1030000000204"
        "08060c7461676765640833d4310a43d4310c7f2681e402c760061085041283120b"
    )
    source, number, ts_us = kinds.read_tagged_gtid(body)
    assert kinds.gtid_text(source, number) == "edd1d6d7-e593-11f1-951a-02fc00000001:tagged:2"
    assert ts_us == 1_795_257_723_552_038


def test_a_rotation_names_file_and_position() -> None:
    assert kinds.read_rotate(made.rotate_body("binlog.000012", 4)) == ("binlog.000012", 4)


@pytest.mark.parametrize("checksum", [True, False])
def test_the_format_description_tells_whether_events_have_checksums(checksum: bool) -> None:
    event = made.event(kinds.FORMAT_DESCRIPTION, made.description_body(checksum=checksum), 0)
    assert kinds.has_checksum(event) is checksum
    for algorithm in (0, 1, 2, 255):
        if algorithm != checksum:
            with pytest.raises(BinlogError, match="damaged"):
                kinds.has_checksum(event[:-5] + bytes([algorithm]) + event[-4:])


def test_a_heartbeat_has_a_position_past_4_gib() -> None:
    assert kinds.read_heartbeat(made.heartbeat_body("binlog.000003", 7 << 32)) == ("binlog.000003", 7 << 32)
    assert kinds.read_heartbeat(b"\x01\x03b.1\x02\x03\xfc\x10\x27\x00") == ("b.1", 10_000)


@pytest.mark.parametrize("zstd", [True, False])
def test_a_compressed_transaction_is_inflated_in_blocks(zstd: bool) -> None:
    inner = bytes(range(256)) * 20_000
    blocks = list(kinds.read_payload(made.payload_body(inner, compressed=zstd)))
    assert b"".join(blocks) == inner
    assert max(map(len, blocks)) <= kinds.INFLATED_BLOCK


def test_a_broken_or_unknown_compression_is_refused() -> None:
    body = made.payload_body(b"x" * 1000, compressed=True)
    with pytest.raises(BinlogError, match="inflated"):
        list(kinds.read_payload(body[:-19] + b"y" * 19))
    with pytest.raises(BinlogError, match="unknown way 7"):
        list(kinds.read_payload(b"\x02\x01\x07\x00abc"))
