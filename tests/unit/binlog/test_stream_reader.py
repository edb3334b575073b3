"""Tests of the stream reader and the buffer: a binlog made by hand goes in, slices come out."""

from __future__ import annotations

import logging
import struct
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from incsnap.binlog.protocol import control_events as kinds
from incsnap.ddl.words import ANSI_QUOTES
from incsnap.errors import BinlogError, OffsetError
from incsnap.events import BinlogPosition, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.tables import TableId
from tests.support import binlog_bytes as made
from tests.support.binlog_bytes import BEGIN, UPDATE, WRITE, XID, Binlog
from tests.support.stream_in_memory import START, Stream, rows_of, transactions_of

MB = 1 << 20
SID = str(made.SID)
T = (kinds.TABLE_MAP, made.map_body(80, "t"))
EXCLUDED = (kinds.TABLE_MAP, made.map_body(81, "x1"))


def rows(content: bytes, table_id: int = 80, kind: int = WRITE) -> tuple[int, bytes]:
    return kind, made.rows_body(table_id, content)


def contents(stream: Stream, end: StreamPosition, start: StreamPosition = START) -> list[bytes]:
    return [body[13:] for _, _, _, body in rows_of(stream.slices(start, end))]


def test_only_included_tables_are_kept_and_every_transaction_counts() -> None:
    log = Binlog()
    log.add([BEGIN, EXCLUDED, rows(b"no", 81), T, rows(b"yes"), rows(b"change", kind=UPDATE), XID])
    log.add([BEGIN, EXCLUDED, rows(b"no", 81), XID])
    stream = Stream().feed(log.dump(GtidSet()))
    end, cut = stream.cut(START)
    assert str(end.delivered) == f"{SID}:1-2"
    assert end.at == BinlogPosition("binlog.000001", log.pos)
    contents_of_cut = stream.buffer.contents(cut.start, cut.end)
    assert (set(contents_of_cut.tables), contents_of_cut.events) == ({TableId("shop", "t")}, 2)
    assert contents_of_cut.last_ts_us == made.TS * 1_000_000 + 2
    [one] = stream.slices(START, end)
    assert one.kinds.tolist() == [kinds.TABLE_MAP, WRITE, UPDATE]
    [transaction] = transactions_of(one)
    assert transaction.gtid == f"{SID}:1"
    assert (transaction.server_id, transaction.thread, transaction.pos) == (7, 12, 4)
    assert contents(stream, end) == [b"yes", b"change"]


def test_tagged_compressed_and_checksum_free_transactions_are_read() -> None:
    log = Binlog(checksum=False)
    log.add([BEGIN, T, rows(b"tagged"), XID], tag="app")
    log.add([made.compressed([BEGIN, T, rows(b"inside"), rows(b"inside too"), XID])])
    log.add([made.compressed([BEGIN, T, rows(b"stored"), XID], zstd=False)])
    stream = Stream(checksum=False).feed(log.dump(GtidSet()))
    end, _ = stream.cut(START)
    assert contents(stream, end) == [b"tagged", b"inside", b"inside too", b"stored"]
    assert str(end.delivered) == f"{SID}:1-2:app:1"
    names = [transaction.gtid for transaction in transactions_of(stream.slices(START, end)[0])]
    assert names == [f"{SID}:app:1", f"{SID}:1", f"{SID}:2"]
    payload_at = {pos for name, pos, _, _ in rows_of(stream.slices(START, end)) if name == f"{SID}:1"}
    assert len(payload_at) == 1


@pytest.mark.parametrize(
    ("gtid", "ts_us"),
    [
        (made.gtid_body(1, 1_700_000_000_000_001), 1_700_000_000_000_001),
        (made.gtid_body(1, 1_700_000_000_000_001, 1_600_000_000_000_002), 1_600_000_000_000_002),
        (made.gtid_body(1, 1_700_000_000_000_001)[:42], made.TS * 1_000_000),
        (made.gtid_body(1, 1_700_000_000_000_001, 0), made.TS * 1_000_000),
    ],
    ids=["once", "first elsewhere", "by an old server, in seconds", "by a replica of an old server, in seconds"],
)
def test_a_transaction_has_the_time_of_its_first_commit(gtid: bytes, ts_us: int) -> None:
    log = Binlog()
    log.add([BEGIN, T, rows(b"a"), XID], gtid=gtid)
    stream = Stream().feed(log.dump(GtidSet()))
    [one] = stream.slices(START, stream.cut(START)[0])

    assert [(each.gtid, each.ts_us) for each in transactions_of(one)] == [(f"{SID}:1", ts_us)]


@pytest.mark.parametrize(("original", "ts_us"), [(0, made.TS * 1_000_000), (1_600_000_000_000_002,) * 2])
def test_a_tagged_transaction_of_a_replica_has_the_time_of_its_source(original: int, ts_us: int) -> None:
    log = Binlog()
    log.add([BEGIN, T, rows(b"a"), XID], tag="app", original_us=original)
    stream = Stream().feed(log.dump(GtidSet()))
    [one] = stream.slices(START, stream.cut(START)[0])

    assert [(each.gtid, each.ts_us) for each in transactions_of(one)] == [(f"{SID}:app:1", ts_us)]


def test_positions_are_64_bits_wide() -> None:
    log = Binlog(first_pos=(1 << 32) - 400)
    for nth in range(6):
        log.add([BEGIN, T, rows(bytes([nth]) * 50), XID])
    assert log.pos > 1 << 32
    start = StreamPosition(GtidSet(), "binlog.000001", (1 << 32) - 400)
    stream = Stream(start)
    stream.feed([log.made_up(kinds.ROTATE, made.rotate_body("binlog.000001", (1 << 32) - 400))])
    stream.feed([packets for entry in log.entries if isinstance(entry, made.Logged) for packets in entry.packets])
    end, _ = stream.cut(start)
    assert end.pos == log.pos
    positions = [transaction.pos for transaction in transactions_of(stream.slices(start, end)[0])]
    assert positions == [entry.begin for entry in log.entries if isinstance(entry, made.Logged)]
    assert positions[-1] > 1 << 32


def test_heartbeats_move_the_position_forward_only() -> None:
    log = Binlog()
    log.add([BEGIN, T, rows(b"a"), XID])
    stream = Stream().feed(log.dump(GtidSet()))
    first, _ = stream.cut(START)
    for file, pos in (("binlog.000001", 9_000), ("binlog.000001", 5_000), ("binlog.000000", 10_000)):
        stream.feed([log.made_up(kinds.HEARTBEAT_V2, made.heartbeat_body(file, pos))])
    end, _ = stream.cut(first)
    assert end.at == BinlogPosition("binlog.000001", 9_000)
    assert end.delivered == first.delivered
    stream.feed([made.packet(b"\0" + made.event(kinds.HEARTBEAT, b"binlog.000001", 9_500))])
    assert stream.cut(end)[0].pos == 9_500
    stream.feed([log.made_up(kinds.HEARTBEAT_V2, made.heartbeat_body("binlog.000002", 300))])
    assert stream.cut(end)[0].at == BinlogPosition("binlog.000002", 300)


def test_ddl_is_a_transaction_of_its_own_and_is_noted() -> None:
    log = Binlog()
    log.add([(kinds.QUERY, made.query_body("ALTER TABLE t ADD x int"))])
    log.add([(kinds.QUERY, made.query_body("GRANT SELECT ON *.* TO u"))])
    log.add([(kinds.QUERY, made.query_body("TRUNCATE u"))])
    create = made.query_body("CREATE TABLE `v` (id int) START TRANSACTION")
    log.add([BEGIN, (kinds.QUERY, create), T, rows(b"a"), XID])
    stream = Stream().feed(log.dump(GtidSet()))
    end, cut = stream.cut(START)
    assert str(end.delivered) == f"{SID}:1-4"
    assert end.pos == log.pos
    changes = stream.buffer.contents(cut.start, cut.end).changes
    assert [(sorted(map(str, change.tables or ())), change.truncates) for change in changes] == [
        (["shop.t"], False), (["shop.u"], True), (["shop.v"], False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "undone"),
    [
        ([BEGIN, T, rows(b"a"), (kinds.QUERY, made.query_body("ROLLBACK"))], 1),
        ([BEGIN, (kinds.QUERY, made.query_body("SAVEPOINT `A`")), T, rows(b"a"), T, rows(b"b"),
          (kinds.QUERY, made.query_body("ROLLBACK TO `a`")), XID], 2),
        ([BEGIN, T, rows(b"a"), (kinds.QUERY, made.query_body("SAVEPOINT `a`")), T, rows(b"b"),
          (kinds.QUERY, made.query_body("ROLLBACK TO SAVEPOINT a")), XID], 1),
    ],
)  # fmt: skip
def test_rows_that_the_log_takes_back_stop_the_reading(events: list[Any], undone: int) -> None:
    log = Binlog()
    log.add([BEGIN, T, rows(b"z"), XID])
    log.add(events)
    with pytest.raises(BinlogError, match=rf"{SID}:2.*rolls back {undone} rows events") as caught:
        Stream().feed(log.dump(GtidSet()))
    assert "table.exclude.list" in caught.value.hint


def test_a_rollback_and_a_savepoint_keep_transactions_whole() -> None:
    log = Binlog()
    log.add([BEGIN, T, rows(b"a"), (kinds.QUERY, made.query_body("SAVEPOINT `a`")),
             (kinds.QUERY, made.query_body("ROLLBACK TO `a`")), T, rows(b"b"), XID])  # fmt: skip
    log.add([BEGIN, T, rows(b"c"), (kinds.QUERY, made.query_body("COMMIT"))])
    log.add([BEGIN, (kinds.QUERY, made.query_body("ROLLBACK"))])
    stream = Stream().feed(log.dump(GtidSet()))
    end, cut = stream.cut(START)
    assert str(end.delivered) == f"{SID}:1-3"
    assert contents(stream, end) == [b"a", b"b", b"c"]
    assert not stream.buffer.contents(cut.start, cut.end).changes


# A call of a function that writes rows is logged as a SELECT, whatever statement has called it.
@pytest.mark.parametrize("sql", ["insert into t values (1)", "SELECT `shop`.`f`(1)"])
def test_a_change_logged_as_a_statement_is_warned_of_once_and_is_no_ddl(
    caplog: pytest.LogCaptureFixture, sql: str
) -> None:
    log = Binlog()
    for _ in range(2):
        log.add([BEGIN, (kinds.QUERY, made.query_body(sql)), XID])
    with caplog.at_level(logging.WARNING):
        stream = Stream().feed(log.dump(GtidSet()))
    _, cut = stream.cut(START)
    assert not stream.buffer.contents(cut.start, cut.end).changes
    assert [record.message for record in caplog.records if "binlog_format=ROW" in record.message] == [
        caplog.records[0].message
    ]


def test_a_session_without_a_database_is_called_so(caplog: pytest.LogCaptureFixture) -> None:
    log = Binlog()
    log.add([BEGIN, (kinds.QUERY, made.query_body("insert into shop.t values (1)", database="")), XID])
    with caplog.at_level(logging.WARNING):
        Stream().feed(log.dump(GtidSet()))
    assert "a change by a session in no database was logged as a statement" in caplog.text


def test_load_data_logged_as_a_statement_is_a_warning_and_other_rows_are_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    head = struct.pack("<IIBHH", 12, 0, 4, 0, 5) + struct.pack("<IIIB", 1, 9, 20, 0) + bytes(5)
    load = kinds.EXECUTE_LOAD_QUERY, head + b"shop\0LOAD DATA INFILE 'x' INTO TABLE t"
    log = Binlog()
    log.add([BEGIN, (0x11, struct.pack("<I", 1) + b"1\n"), load, T, rows(b"a"), XID])
    with caplog.at_level(logging.WARNING):
        stream = Stream().feed(log.dump(GtidSet()))
    assert contents(stream, stream.cut(START)[0]) == [b"a"]
    assert [
        record.message for record in caplog.records if "database 'shop' was logged as a statement" in record.message
    ]


@pytest.mark.parametrize(("sql_mode", "table"), [(ANSI_QUOTES, "t"), (0, "elsewhere")])
def test_a_statement_is_read_in_the_sql_mode_of_its_session(sql_mode: int, table: str) -> None:
    status = b"\0\0\0\0\0\1" + sql_mode.to_bytes(8, "little")
    log = Binlog()
    log.add([(kinds.QUERY, made.query_body('ALTER TABLE "t" ADD x int', status=status))])
    stream = Stream().feed(log.dump(GtidSet()))
    _, cut = stream.cut(START)
    (change,) = stream.buffer.contents(cut.start, cut.end).changes
    assert change.session.sql_mode == sql_mode
    assert change.touches(TableId("shop", table))
    assert (change.tables is None) is not bool(sql_mode)


def test_a_statement_has_whether_it_has_an_xid_and_stands_in_a_transaction() -> None:
    sql = "CREATE TABLE IF NOT EXISTS t (id int)"
    log = Binlog()
    log.add([(kinds.QUERY, made.query_body(sql, status=b"\x11" + bytes(8)))])
    log.add([(kinds.QUERY, made.query_body(sql))])
    log.add([BEGIN, (kinds.QUERY, made.query_body(f"{sql} START TRANSACTION")), XID])
    stream = Stream().feed(log.dump(GtidSet()))
    _, cut = stream.cut(START)
    changes = stream.buffer.contents(cut.start, cut.end).changes
    assert [(each.has_xid, each.in_transaction) for each in changes] == [(True, False), (False, False), (False, True)]


def test_a_table_id_with_a_new_meaning_is_noticed() -> None:
    log = Binlog()
    log.add([BEGIN, T, rows(b"a"), XID])
    log.add([BEGIN, (kinds.TABLE_MAP, made.map_body(80, "x9")), rows(b"excluded"), XID])
    log.add([BEGIN, (kinds.TABLE_MAP, made.map_body(80, "u")), rows(b"b"), XID])
    stream = Stream().feed([b"".join(log.dump(GtidSet()))])
    end, cut = stream.cut(START)
    assert contents(stream, end) == [b"a", b"b"]
    assert {str(table) for table in stream.buffer.contents(cut.start, cut.end).tables} == {"shop.t", "shop.u"}


def test_a_format_description_can_turn_checksums_off_in_the_middle() -> None:
    before, after = Binlog(), Binlog(checksum=False, first_pos=500)
    before.add([BEGIN, T, rows(b"a"), XID])
    after.add([BEGIN, T, rows(b"b"), XID], number=2)
    description = made.packet(b"\0" + made.event(kinds.FORMAT_DESCRIPTION, made.description_body(checksum=False), 0))
    tail = b"".join(packets for entry in after.entries if isinstance(entry, made.Logged) for packets in entry.packets)
    stream = Stream().feed([b"".join(before.dump(GtidSet())) + description + tail])
    assert contents(stream, stream.cut(START)[0]) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("kind", "body", "flags", "message"),
    [
        (kinds.ANONYMOUS_GTID, made.gtid_body(1, 1), 0, "without GTID"),
        (kinds.INCIDENT, b"\x01\0\0", 0, "events are missing"),
        (0x63, b"", 0, "unknown event type 99"),
        (kinds.QUERY, made.query_body("ALTER TABLE t ADD x int"), 0, "has no GTID"),
        (kinds.XID, bytes(8), 0, "whole transactions"),
        (WRITE, made.rows_body(99, b""), 0, "without a table map"),
        (0x63, b"", 0x80, None),
        (kinds.ROWS_QUERY, b"\x05insert", 0x80, None),
        (kinds.PREVIOUS_GTIDS, bytes(8), 0, None),
        (WRITE, made.rows_body(0xFFFFFF, b""), 0, "whole transactions"),
    ],
)
def test_nothing_is_guessed_about_odd_events(kind: int, body: bytes, flags: int, message: str | None) -> None:
    packets = [made.packet(b"\0" + made.event(kind, body, 300, flags=flags))]
    if message is None:
        Stream().feed(packets)
        return
    with pytest.raises(BinlogError, match=message) as caught:
        Stream().feed(packets)
    assert "binlog.000001" in str(caught.value)


def test_a_compressed_transaction_that_is_cut_off_is_refused() -> None:
    inner = made.event(kinds.QUERY, made.query_body("BEGIN"), 0, checksum=False)[:-3]
    log = Binlog()
    log.add([(kinds.TRANSACTION_PAYLOAD, made.payload_body(inner, compressed=True))])
    with pytest.raises(BinlogError, match="cut off"):
        Stream().feed(log.dump(GtidSet()))


#: Parts of a statement that are very long or very many.
LONG = {
    "a literal": "comment '%s'" % ("x" * (8 * MB)),
    "a literal of escapes": "comment '%s'" % (r"\'" * (4 * MB)),
    "a literal of doubled quotes": "comment '%s'" % ("''" * (4 * MB)),
    "a literal that mentions RENAME": "comment 'rename %s'" % ("x" * (8 * MB)),
    "a name": "add column `%s` int" % ("``" * (4 * MB)),
    "a comment": "/* %s */ comment ''" % ("* / " * (2 * MB)),
    "words": "add check (%s)" % (" v " * (8 * MB // 3)),
}


@pytest.mark.parametrize("part", LONG.values(), ids=LONG)
@pytest.mark.parametrize("table", ["t", "x.t"])
def test_a_statement_takes_a_small_multiple_of_its_length(table: str, part: str) -> None:
    log = Binlog()
    log.add([(kinds.QUERY, made.query_body(f"ALTER TABLE {table} {part}"))])
    packets = b"".join(log.dump(GtidSet()))
    stream = Stream()
    tracemalloc.start()
    try:
        stream.feed([packets])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * MB
    assert stream.buffer.cost < 20 * MB


def _long_compressed() -> Binlog:
    """Return a binlog with a transaction of 100 MB that is stored without compression, and a small one."""
    events = [BEGIN, T, *[rows(bytes([n]) * MB) for n in range(100)], XID]
    log = Binlog()
    log.add([made.compressed(events, zstd=False)])
    log.add([BEGIN, T, rows(b"next"), XID])
    return log


def _mapped() -> int:
    """Return how many bytes of mapped files are in this process's memory."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssFile")]
    return int(line.split()[1]) << 10


@pytest.mark.skipif(sys.platform != "linux", reason="what is mapped is read from /proc")
def test_a_compressed_transaction_of_many_packets_is_never_in_memory_whole() -> None:
    stream, log = Stream(), b"".join(_long_compressed().dump(GtidSet()))
    seen: list[bytes] = []
    mapped = before = _mapped()
    tracemalloc.start()
    try:
        for at in range(0, len(log), MB):
            for block in stream.framer.feed(log[at : at + MB]):
                for segment in stream.reader.add(block):
                    seen += [segment.payload[-1:]] * int(segment.rows_before[-1])
                    mapped = max(mapped, _mapped())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == [bytes([n]) for n in range(100)] + [b"t"]
    # Three copies of a packet of 16 MB: as it came, joined, and as a slice of the joined bytes.
    assert peak < 60 * MB
    assert mapped < before + 20 * MB


def test_nothing_of_a_long_compressed_transaction_is_used_if_its_checksum_is_wrong() -> None:
    log = bytearray(b"".join(_long_compressed().dump(GtidSet())))
    log[len(log) // 2] ^= 1
    stream = Stream()
    with pytest.raises(BinlogError, match="damaged"):
        stream.feed(bytes(log[at : at + MB]) for at in range(0, len(log), MB))
    assert stream.buffer.work == 0


def test_a_large_transaction_is_cut_inside_with_its_maps_repeated() -> None:
    log = Binlog()
    log.add([BEGIN, T, EXCLUDED, rows(b"1" * 100), rows(b"no", 81), rows(b"2" * 100), rows(b"3" * 100), XID])
    log.add([BEGIN, T, rows(b"4"), XID])
    stream = Stream().feed(log.dump(GtidSet()))
    ends = [START]
    for _ in range(4):
        ends.append(stream.cut(ends[-1], max_bytes=150)[0])
    assert [(end.open_gtid, end.events_done) for end in ends[1:]] == [
        (f"{SID}:1", 1), (f"{SID}:1", 2), ("", 0), ("", 0),
    ]  # fmt: skip
    assert not ends[2].delivered
    batches = [contents(stream, end, start) for start, end in pairwise(ends)]
    assert batches == [[b"1" * 100], [b"2" * 100], [b"3" * 100], [b"4"]]
    for one in stream.slices(ends[1], ends[2]):
        assert one.kinds.tolist() == [kinds.TABLE_MAP, WRITE]
        assert [transaction.event for transaction in transactions_of(one)] == [0]
    assert [end.pos for end in ends] == sorted(end.pos for end in ends)


@pytest.mark.parametrize("most", [1, 100, 250, 330])
def test_the_reads_in_which_a_large_transaction_arrives_do_not_change_where_it_is_cut(most: int) -> None:
    log = Binlog()
    log.add([BEGIN, *[T, rows(b"x" * 50)] * 3, XID])
    packets = list(log.dump(GtidSet()))
    expected = Stream().feed([b"".join(packets)]).cut(START, most)[0]

    for first in range(1, len(packets)):
        for each in range(1, len(packets)):
            reads = [packets[:first], *(packets[at : at + each] for at in range(first, len(packets), each))]
            end, _ = Stream().feed(map(b"".join, reads)).cut(START, most)
            assert (end.open_gtid, end.events_done) == (expected.open_gtid, expected.events_done)


def test_a_large_transaction_behind_others_without_captured_changes_is_begun_at_once() -> None:
    log = Binlog()
    log.add([BEGIN, EXCLUDED, rows(b"no", 81), XID])
    log.add([BEGIN, T, rows(b"1" * 100), rows(b"2" * 100), XID])
    stream = Stream().feed(log.dump(GtidSet()))

    end, cut = stream.cut(START, max_bytes=150)

    assert (str(end.delivered), end.open_gtid, end.events_done) == (f"{SID}:1", f"{SID}:2", 1)
    assert contents(stream, end) == [b"1" * 100]
    assert cut.full


def test_an_open_transaction_is_left_alone_until_there_is_no_room() -> None:
    log = Binlog()
    whole = log.add([BEGIN, T, rows(b"1"), rows(b"2"), XID])
    stream = Stream().feed([*list(Binlog().dump(GtidSet()))[:2], *whole.packets[:-2]])
    end, cut = stream.cut(START)
    assert cut.end == cut.start
    assert end == START
    end, _ = stream.cut(START, inside=True)
    assert (end.open_gtid, end.events_done) == (f"{SID}:1", 1)


def test_another_transaction_than_the_open_one_is_refused() -> None:
    log = Binlog()
    log.add([BEGIN, T, rows(b"1"), XID], number=5)
    start = StreamPosition(GtidSet(), "binlog.000001", 300, f"{SID}:4", 1)
    with pytest.raises(OffsetError, match=f"{SID}:5 where the rest of {SID}:4"):
        Stream(start).feed(log.dump(GtidSet()))


def test_a_transaction_of_an_excluded_table_costs_no_memory_however_large() -> None:
    log = Binlog()
    whole = log.add([BEGIN, EXCLUDED, *[rows(b"no" * 100, 81) for _ in range(500)], XID])
    stream = Stream().feed(list(log.dump(GtidSet()))[:2])
    for packets in whole.packets[:-1]:
        stream.feed([packets])
    assert stream.buffer.cost < 10_000
    stream.feed([whole.packets[-1]])
    assert str(stream.cut(START)[0].delivered) == f"{SID}:1"


def test_slices_are_cut_between_transactions() -> None:
    log = Binlog()
    for nth in range(20):
        log.add([BEGIN, T, rows(bytes([nth]) * 50), XID])
    stream = Stream().feed(log.dump(GtidSet()))
    end, _ = stream.cut(START)
    slices = stream.slices(START, end, 4)
    assert [len(one.transactions) for one in slices] == [5, 5, 5, 5]
    assert rows_of(slices) == rows_of(stream.slices(START, end, 1))
    assert stream.slices(START, START, 4) == []
    assert rows_of(stream.slices(START, end, 1000)) == rows_of(slices)


def test_a_transaction_that_dominates_is_cut_inside() -> None:
    log = Binlog()
    log.add([BEGIN, T, *[rows(bytes([nth]) * 500) for nth in range(40)], XID])
    log.add([BEGIN, T, rows(b"small"), XID])
    stream = Stream().feed(log.dump(GtidSet()))
    end, _ = stream.cut(START)
    slices = stream.slices(START, end, 4)
    sizes = [len(one.payload) for one in slices]
    assert len(slices) == 4
    assert max(sizes) < 2 * min(sizes)
    assert rows_of(slices) == rows_of(stream.slices(START, end, 1))


def test_memory_is_freed_and_older_positions_are_refused() -> None:
    log = Binlog()
    for nth in range(3):
        log.add([BEGIN, T, rows(bytes([nth]) * 50), XID])
    stream = Stream()
    for packets in log.dump(GtidSet()):
        stream.feed([packets])
    first, cut = stream.cut(START, max_rows=1)
    stream.buffer.hand_out(cut.end)
    second, _ = stream.cut(first, max_rows=1)
    before = stream.buffer.cost
    stream.buffer.forget(first)
    stream.buffer.forget(first)
    assert stream.buffer.cost < before
    assert contents(stream, second, first) == [b"\x01" * 50]
    with pytest.raises(OffsetError, match="before"):
        stream.slices(START, second)
    stream.buffer.forget(stream.cut(second)[0])
    assert stream.buffer.cost == stream.buffer.ahead == 0


def test_a_position_inside_a_transaction_before_the_one_that_was_done_is_refused() -> None:
    log = Binlog()
    log.add([BEGIN, T, *(rows(bytes([nth]) * 50) for nth in range(4)), XID])
    stream = Stream().feed(log.dump(GtidSet()))
    first, _ = stream.cut(START, max_rows=1)
    second, _ = stream.cut(first, max_rows=1)
    third, _ = stream.cut(second, max_rows=1)
    assert [at.events_done for at in (first, second, third)] == [1, 2, 3]
    stream.buffer.forget(second)
    stream.buffer.forget(first)

    assert contents(stream, third, second) == [b"\x02" * 50]
    for before in first, START:
        with pytest.raises(OffsetError, match="before"):
            stream.slices(before, third)


def test_stop_and_statement_details_do_no_harm() -> None:
    log = Binlog()
    log.add([BEGIN, (0x05, struct.pack("<BQ", 2, 9)), T, (kinds.ROWS_QUERY, b"\x01i"), rows(b"a"), XID])
    stream = Stream().feed(log.dump(GtidSet()))
    assert contents(stream, stream.cut(START)[0]) == [b"a"]
