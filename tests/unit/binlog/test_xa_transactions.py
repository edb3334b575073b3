"""Tests of XA transactions in a binlog made by hand: rows stand before XA PREPARE and are sent at XA COMMIT."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from incsnap.binlog.prepared import NotPrepared, PreparedTransactions
from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.slicing import cut_slices
from incsnap.binlog.xa_parts import XaMark
from incsnap.ddl.xa_statements import read_xa, xid_of
from incsnap.errors import BinlogError
from incsnap.events import BinlogPosition, PreparedXa, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.tables import TableId
from tests.support import binlog_bytes as made
from tests.support.binlog_bytes import BEGIN, WRITE, XID, Binlog, Logged, xa, xa_prepare
from tests.support.parts_in_memory import Parts
from tests.support.stream_in_memory import START, Stream, of_shop, rows_of, transactions_of

SID = str(made.SID)
T = (kinds.TABLE_MAP, made.map_body(80, "t"))
EXCLUDED = (kinds.TABLE_MAP, made.map_body(81, "x1"))
A = "X'61',X'',1"


def rows(content: bytes, table_id: int = 80) -> tuple[int, bytes]:
    return WRITE, made.rows_body(table_id, content)


def prepare(log: Binlog, name: str, *contents: bytes) -> Logged:
    return log.add([xa("START", name), T, *map(rows, contents), xa("END", name), xa_prepare(name)])


def sent(stream: Stream, end: StreamPosition, start: StreamPosition = START) -> list[tuple[str, bytes]]:
    """Return (number of the transaction, content of the row) for each row."""
    return [(gtid.removeprefix(f"{SID}:"), body[13:]) for gtid, _, _, body in rows_of(stream.slices(start, end))]


def test_rows_come_with_xa_commit_as_one_transaction_each_with_its_own_place() -> None:
    log = Binlog()
    prepared = prepare(log, "61", b"held", b"too")
    log.add([BEGIN, T, rows(b"between"), XID])
    commit = log.add([xa("COMMIT")])
    stream = Stream().feed(log.dump(GtidSet()))

    end, cut = stream.cut(START)

    assert sent(stream, end) == [("2", b"between"), ("3", b"held"), ("3", b"too")]
    assert str(end.delivered) == f"{SID}:1-3"
    [_, transaction] = transactions_of(stream.slices(START, end)[0])
    assert (transaction.pos, transaction.ts_us, transaction.thread) == (commit.begin, made.TS * 1_000_000 + 3, 12)
    places = [pos for gtid, pos, _, _ in rows_of(stream.slices(START, end)) if gtid.endswith(":3")]
    assert places == [prepared.begin + sum(len(packets) - 5 for packets in prepared.packets[:nth]) for nth in (3, 4)]
    marks = stream.buffer.contents(cut.start, cut.end).marks
    assert [(mark.transaction.xid, mark.prepared) for mark in marks] == [(A, True), (A, False)]


def test_nothing_of_it_is_told_before_its_commit_neither_tables_nor_signals() -> None:
    log = Binlog()
    prepare(log, "61", b"a signal, perhaps")
    stream = Stream().feed(log.dump(GtidSet()))
    before, cut = stream.cut(START)
    assert stream.buffer.contents(cut.start, cut.end).tables == frozenset()
    stream.feed(log.add([xa("COMMIT")]).packets)

    end, cut = stream.cut(before)

    contents = stream.buffer.contents(cut.start, cut.end)
    assert (set(contents.tables), contents.events) == ({TableId("shop", "t")}, 1)
    only = TableId("shop", "t")
    [signals] = cut_slices(stream.buffer.stretches(cut.start, cut.end), stream.ids, 1, only)
    assert rows_of([signals]) == rows_of(stream.slices(before, end))


def test_a_rolled_back_xa_transaction_is_never_sent() -> None:
    log = Binlog()
    prepare(log, "61", b"gone")
    log.add([xa("ROLLBACK")])
    stream = Stream().feed(log.dump(GtidSet()))

    end, _ = stream.cut(START)

    assert sent(stream, end) == []
    assert str(end.delivered) == f"{SID}:1-2"


def test_a_commit_in_one_phase_is_a_commit_like_any_other() -> None:
    log = Binlog()
    log.add([xa("START"), EXCLUDED, rows(b"no", 81), T, rows(b"a"), xa("END"), xa_prepare(one_phase=True)])
    events = log.entries[0]
    assert isinstance(events, Logged)
    own_place = events.begin + sum(len(packets) - 5 for packets in events.packets[:5])
    stream = Stream().feed(log.dump(GtidSet()))

    end, _ = stream.cut(START)

    assert sent(stream, end) == [("1", b"a")]
    assert [at for _, at, _, _ in rows_of(stream.slices(START, end))] == [own_place]


@pytest.mark.parametrize("one_phase", [False, True])
def test_compressed_ones_are_read(one_phase: bool) -> None:
    log = Binlog()
    log.add([made.compressed([xa("START"), T, rows(b"a"), rows(b"b"), xa("END"), xa_prepare(one_phase=one_phase)])])
    if not one_phase:
        log.add([xa("COMMIT")])
    stream = Stream().feed(log.dump(GtidSet()))

    end, _ = stream.cut(START)

    assert sent(stream, end) == [("1" if one_phase else "2", content) for content in (b"a", b"b")]


def test_several_are_prepared_at_once_and_a_name_is_used_again() -> None:
    log = Binlog()
    prepare(log, "61", b"first")
    prepare(log, "62", b"second")
    log.add([xa("COMMIT", "62")])
    log.add([xa("COMMIT", "61")])
    prepare(log, "61", b"again")
    log.add([xa("COMMIT", "61")])
    stream = Stream().feed(log.dump(GtidSet()))

    assert sent(stream, stream.cut(START)[0]) == [("3", b"second"), ("4", b"first"), ("6", b"again")]


def test_a_restart_between_prepare_and_commit_finds_the_rows_where_they_were_put() -> None:
    log, store = Binlog(), Parts()
    prepare(log, "61", b"held")
    stream = Stream(prepared=PreparedTransactions(store)).feed(log.dump(GtidSet()))
    end, cut = stream.cut(START)
    [mark] = stream.buffer.contents(cut.start, cut.end).marks
    kept = stream.prepared.keep([mark.transaction])
    assert kept == [PreparedXa(A, f"{SID}:1", "binlog.000001", ("0",))]
    log.add([xa("COMMIT")])

    again = Stream(end, prepared=PreparedTransactions(store, kept)).feed(log.dump(end.delivered))

    assert sent(again, again.cut(end)[0], end) == [("2", b"held")]


def test_a_batch_may_end_between_them_though_the_commit_was_read() -> None:
    log, store = Binlog(), Parts()
    prepare(log, "61", b"held")
    log.add([xa("COMMIT")])
    stream = Stream(prepared=PreparedTransactions(store)).feed(log.dump(GtidSet()))
    whole, _ = stream.cut(START)
    first = StreamPosition(GtidSet.parse(f"{SID}:1"), whole.file, 4)
    place = stream.buffer.place_of(first)
    start = stream.buffer.place_of(START)
    assert start is not None
    assert place is not None
    [mark] = stream.buffer.contents(start, place).marks

    kept = stream.prepared.keep([mark.transaction])

    assert mark.prepared
    assert store.get(*kept[0].parts).payload.endswith(b"held")


def test_a_large_one_is_cut_inside_behind_its_commit_and_goes_on_after_a_restart() -> None:
    log, store = Binlog(), Parts()
    prepare(log, "61", b"1" * 100, b"2" * 100, b"3" * 100)
    log.rotate()
    commit = log.add([xa("COMMIT")])
    prepared = PreparedTransactions(store, memory_bytes=150)
    stream = Stream(prepared=prepared).feed(log.dump(GtidSet()))
    first, _ = stream.cut(START, max_bytes=250)
    assert (first.open_gtid, first.events_done) == (f"{SID}:2", 1)
    assert first.at == BinlogPosition("binlog.000002", commit.begin + len(commit.packets[0]) - 5)
    [mark] = marks_of(stream, START, first)
    kept = prepared.keep([mark.transaction])

    again = Stream(first, prepared=PreparedTransactions(store, kept)).feed(log.dump(first.delivered))

    end, _ = again.cut(first)
    assert sent(stream, first) == [("2", b"1" * 100)]
    assert sent(again, end, first) == [("2", b"2" * 100), ("2", b"3" * 100)]
    assert not end.open_gtid


def marks_of(stream: Stream, start: StreamPosition, end: StreamPosition) -> Sequence[XaMark]:
    first, last = stream.buffer.place_of(start), stream.buffer.place_of(end)
    assert first is not None
    assert last is not None
    return stream.buffer.contents(first, last).marks


def test_memory_is_bounded_and_what_exceeds_it_is_put_away() -> None:
    log, store = Binlog(), Parts()
    contents = [bytes([nth]) * 5_000 for nth in range(40)]
    logged = prepare(log, "61", *contents)
    prepared = PreparedTransactions(store, memory_bytes=20_000)
    stream = Stream(prepared=prepared).feed(list(Binlog().dump(GtidSet()))[:2])
    for packets in logged.packets:
        stream.feed([packets])
        assert prepared._memory <= 20_000
    assert stream.buffer.cost < 10_000
    commit = log.add([xa("COMMIT")])

    stream.feed(commit.packets)

    assert store.written > 5
    assert sent(stream, stream.cut(START)[0]) == [("2", content) for content in contents]
    assert prepared._memory == 0


def test_a_broken_connection_leaves_nothing_of_a_half_read_one() -> None:
    log, store = Binlog(), Parts()
    logged = prepare(log, "61", *(bytes([nth]) * 5_000 for nth in range(9)))
    prepared = PreparedTransactions(store, memory_bytes=12_000)
    stream = Stream(prepared=prepared).feed([*list(Binlog().dump(GtidSet()))[:2], *logged.packets[:-3]])
    assert store.parts
    log.add([xa("COMMIT")])
    stream.connect()

    stream.feed(log.dump(stream.buffer.reached()))

    assert [content[:1] for _, content in sent(stream, stream.cut(START)[0])] == [bytes([nth]) for nth in range(9)]


def test_a_commit_whose_prepare_was_never_seen_is_not_passed_by() -> None:
    log = Binlog()
    log.add([xa("COMMIT")])

    with pytest.raises(NotPrepared, match=f"{SID}:1 is the XA COMMIT of {A}"):
        Stream().feed(log.dump(GtidSet()))


def test_a_rollback_whose_prepare_was_never_seen_is() -> None:
    log = Binlog()
    log.add([xa("ROLLBACK")])
    log.add([BEGIN, T, rows(b"on"), XID])

    stream = Stream().feed(log.dump(GtidSet()))

    assert sent(stream, stream.cut(START)[0]) == [("2", b"on")]


def test_one_of_excluded_tables_is_known_and_sends_nothing() -> None:
    log = Binlog()
    log.add([xa("START"), EXCLUDED, rows(b"no", 81), xa("END"), xa_prepare()])
    log.add([xa("COMMIT")])
    stream = Stream().feed(log.dump(GtidSet()))

    end, cut = stream.cut(START)

    assert sent(stream, end) == []
    assert stream.buffer.contents(cut.start, cut.end).events == 0


def test_a_table_that_was_included_in_between_is_not_taken_for_empty() -> None:
    log, store = Binlog(), Parts()
    log.add([xa("START"), EXCLUDED, rows(b"no", 81), xa("END"), xa_prepare()])
    prepared = PreparedTransactions(store, captured="all but x1")
    stream = Stream(prepared=prepared).feed(log.dump(GtidSet()))
    end, cut = stream.cut(START)
    kept = prepared.keep([mark.transaction for mark in stream.buffer.contents(cut.start, cut.end).marks])
    log.add([xa("COMMIT")])

    same = Stream(end, prepared=PreparedTransactions(store, kept, "all but x1")).feed(log.dump(end.delivered))

    assert sent(same, same.cut(end)[0], end) == []
    with pytest.raises(NotPrepared):
        Stream(end, prepared=PreparedTransactions(store, kept, "all")).feed(log.dump(end.delivered))


def test_a_table_that_was_excluded_in_between_is_left_out() -> None:
    log, store = Binlog(), Parts()
    prepare(log, "61", b"held")
    prepared = PreparedTransactions(store, captured="t")
    stream = Stream(prepared=prepared).feed(log.dump(GtidSet()))
    end, cut = stream.cut(START)
    kept = prepared.keep([mark.transaction for mark in stream.buffer.contents(cut.start, cut.end).marks])
    log.add([xa("COMMIT")])

    again = Stream(end, lambda _: False, prepared=PreparedTransactions(store, kept, "none"))
    again.feed(log.dump(end.delivered))

    assert sent(again, again.cut(end)[0], end) == []


def test_texts_of_statements_are_held_with_their_rows() -> None:
    log = Binlog()
    log.add([xa("START"), (kinds.ROWS_QUERY, b"\x06insert"), T, rows(b"a"), xa("END"), xa_prepare()])
    log.add([xa("COMMIT")])
    stream = Stream(queries=True).feed(log.dump(GtidSet()))

    [one] = stream.slices(START, stream.cut(START)[0])

    assert one.texts() == [b"insert"]


def test_nothing_is_guessed_about_a_stream_that_breaks_the_rules() -> None:
    inside, odd, never = Binlog(), Binlog(), Binlog()
    inside.add([xa("START"), T, rows(b"a"), XID])
    odd.add([(kinds.QUERY, made.query_body("XA COMMIT 'plain'"))])
    never.add([BEGIN, T, rows(b"a"), xa_prepare()])

    for log, message in (
        (inside, "begins inside an XA transaction"),
        (odd, "unknown form of the XA statement"),
        (never, "ends without a beginning"),
    ):
        with pytest.raises(BinlogError, match=message):
            Stream(included=of_shop).feed(log.dump(GtidSet()))


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        ("XA START X'61',X'62',7", ("START", "X'61',X'62',7")),
        ("XA COMMIT X'00ff27',X'712778',4294967295", ("COMMIT", "X'00ff27',X'712778',4294967295")),
        ("XA ROLLBACK X'',X'',0", ("ROLLBACK", "X'',X'',0")),
        ("XA RECOVER", None),
    ],
)
def test_statements_are_read_as_the_server_writes_them(sql: str, statement: tuple[str, str] | None) -> None:
    assert read_xa(sql) == statement
    if sql.startswith("XA COMMIT") and statement is not None:
        assert xid_of(4294967295, b"\x00\xff'", b"q'x") == statement[1]
