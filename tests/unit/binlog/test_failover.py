"""Tests of a stream that continues on another server, or in another binlog of the same server.

Positions begin anew there. Rows of an incomplete transaction are never mixed with the other server's.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol import dump_connection as dump
from incsnap.errors import OffsetError
from incsnap.events import BinlogPosition, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.window import ChunkResult, Window, read_elsewhere, released_by
from incsnap.tables import TableId
from tests.support import binlog_bytes as made
from tests.support.binlog_bytes import BEGIN, WRITE, XID, Binlog
from tests.support.stream_in_memory import START, Stream, contents_of, rows_of

SID = str(made.SID)
T = (kinds.TABLE_MAP, made.map_body(80, "t"))
ON_A = replace(START, server_uuid="a")
WINDOW = Window("1-0", 0, TableId("shop", "t"), "s", None, ("9",), 9, 1)


def rows(content: bytes) -> tuple[int, bytes]:
    return WRITE, made.rows_body(80, content)


def bodies(stream: Stream, start: StreamPosition, end: StreamPosition) -> list[bytes]:
    return [body[13:] for *_, body in rows_of(stream.slices(start, end))]


def a_log(first_pos: int, *transactions: list[bytes]) -> Binlog:
    log = Binlog(first_pos=first_pos)
    for contents in transactions:
        log.add([BEGIN, T, *map(rows, contents), XID])
    return log


def test_positions_begin_anew_on_another_server_and_never_go_back_on_one() -> None:
    old, new = a_log(500_000, [b"1"]), a_log(4, [b"1"], [b"2"])
    stream = Stream(ON_A).feed(old.dump(GtidSet()))
    before, _ = stream.cut(ON_A)
    assert before.at == BinlogPosition("binlog.000001", old.pos, "a")
    stream.connect(server_uuid="a")
    assert stream.cut(before)[0] == before

    stream.connect(server_uuid="b")
    unknown, _ = stream.cut(before)
    assert unknown == replace(before, file="", pos=0, server_uuid="b")
    assert not unknown.reached("binlog.000001", 4)

    stream.feed(new.dump(stream.buffer.reached()))
    after, _ = stream.cut(unknown)
    assert after.at == BinlogPosition("binlog.000001", new.pos, "b")
    assert bodies(stream, ON_A, after) == [b"1", b"2"]


def test_positions_begin_anew_where_the_stream_comes_to_files_of_another_log_bin() -> None:
    old = a_log(500_000, [b"1"])
    stream = Stream(ON_A).feed(old.dump(GtidSet()))
    before, _ = stream.cut(ON_A)
    stream.feed([made.packet(b"\0" + made.event(kinds.ROTATE, made.rotate_body("newlog.000001"), 0))])
    after, _ = stream.cut(before)
    assert after.at == BinlogPosition("newlog.000001", 4, "a/1")
    assert not before.reached("newlog.000001", 4)
    window = replace(WINDOW, result=ChunkResult(high_file="binlog.000001", high_pos=9, server_uuid="a"))
    assert not released_by(window, after, after.server_uuid)
    assert read_elsewhere(window, after.server_uuid)


def test_a_saved_position_of_an_unknown_server_is_not_believed() -> None:
    saved = replace(START, file="binlog.000900").to_json()
    del saved["server_uuid"]
    start = StreamPosition.from_json(saved)
    assert start.server_uuid == ""
    stream = Stream(start)
    stream.connect(server_uuid="b")
    assert stream.cut(start)[0].at == BinlogPosition("", 0, "b")


def test_a_transaction_that_was_not_handed_out_comes_wholly_from_the_other_server() -> None:
    old = a_log(500_000, [b"0"], [b"1", b"2", b"3"])
    # The new server has the same rows in other events. Counting events would lose or repeat some.
    new = a_log(4, [b"0"], [b"12", b"3"], [b"4"])
    whole = b"".join(old.dump(GtidSet()))
    stream = Stream(ON_A).feed([whole[:-150]])
    assert stream.reader.position.pos > 500_000
    before, cut = stream.cut(ON_A)
    stream.buffer.hand_out(cut.end)
    stream.connect(server_uuid="b")
    assert stream.cut(before)[0].delivered == before.delivered
    stream.feed(new.dump(stream.buffer.reached()))
    end, cut = stream.cut(before)
    assert bodies(stream, ON_A, before) == [b"0"]
    assert bodies(stream, before, end) == [b"12", b"3", b"4"]
    stream.buffer.hand_out(cut.end)
    stream.buffer.forget(end)
    assert stream.buffer.cost == stream.buffer.ahead == 0


def test_a_transaction_half_handed_out_is_not_continued_on_another_server() -> None:
    old = a_log(500_000, [b"1" * 100, b"2" * 100])
    stream = Stream(ON_A).feed([b"".join(old.dump(GtidSet()))[:-90]])
    inside, _ = stream.cut(ON_A, max_bytes=150)
    assert inside.open_gtid
    known = stream.slices(ON_A, inside)
    with pytest.raises(OffsetError, match="delivered in part"):
        stream.connect(server_uuid="b")
    assert contents_of(stream.slices(ON_A, inside)) == contents_of(known)
    stream.buffer.forget(inside)
    for again in (stream, Stream(inside)):
        with pytest.raises(OffsetError, match="delivered in part"):
            again.connect(server_uuid="b")
        again.connect(server_uuid="a")


def test_a_window_is_only_released_and_only_kept_by_the_server_it_was_read_on() -> None:
    window = replace(WINDOW, result=ChunkResult(high_file="binlog.000001", high_pos=9, server_uuid="a"))
    end = StreamPosition(GtidSet(), "binlog.000009", 4)
    verdicts = [(released_by(window, end, server), read_elsewhere(window, server)) for server in ("a", "b", "")]
    assert verdicts == [(True, False), (False, True), (False, False)]


class Server:
    """A server that returns the next of its executed GTID sets at each question."""

    def __init__(self, *executed: str) -> None:
        self.executed = list(executed)

    def cursor(self) -> Server:
        return self

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, _sql: str) -> None:
        pass

    def fetchone(self) -> tuple[str]:
        return (self.executed.pop(0) if len(self.executed) > 1 else self.executed[0],)


def test_a_server_behind_may_catch_up_and_one_that_lacks_transactions_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dump, "_CATCH_UP_PAUSE_SECONDS", 0.0)
    delivered = GtidSet.parse(f"{SID}:1-9")
    dump._await_delivered(Server(f"{SID}:1-5", f"{SID}:1-8", f"{SID}:1-12"), delivered, "b", lambda: False)
    with pytest.raises(dump.ConnectionLost):
        dump._await_delivered(Server(""), delivered, "b", lambda: True)
    monkeypatch.setattr(dump, "_CATCH_UP_SECONDS", 0.0)
    with pytest.raises(OffsetError, match=f"server b lacks .*{SID}:7-9"):
        dump._await_delivered(Server(f"{SID}:1-6"), delivered, "b", lambda: False)
