"""Tests of statements in the stream: the texts beside rows, and TRUNCATE, after which a batch ends."""

from __future__ import annotations

import numpy as np
import pytest

from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.slices import Slice
from incsnap.gtid import GtidSet
from incsnap.mysql.server_rules import query_findings
from tests.support.binlog_bytes import BEGIN, WRITE, XID, Binlog, compressed, map_body, query_body, rows_body
from tests.support.stream_in_memory import START, Stream, rows_of

MAP = kinds.TABLE_MAP


def _text(sql: str) -> tuple[int, bytes]:
    return kinds.ROWS_QUERY, bytes([min(255, len(sql))]) + sql.encode()


def _statement(sql: str, table_id: int, table: str, *rows: bytes) -> list[tuple[int, bytes]]:
    changes = [(WRITE, rows_body(table_id, row)) for row in rows]
    return [_text(sql), (MAP, map_body(table_id, table)), *changes]


def _statements(slices: list[Slice]) -> list[str | None]:
    """Return the statement text of each rows event."""
    statements: list[str | None] = []
    for slice_ in slices:
        texts = [text.decode() for text in slice_.texts()]
        nth = slice_.text_of(np.flatnonzero(slice_.is_rows)).tolist()
        statements += [None if at < 0 else texts[at] for at in nth]
    return statements


def _log(*, payload: bool = False) -> Binlog:
    log = Binlog()
    events = [
        *_statement("INSERT a", 1, "a", b"1", b"2"),
        *_statement("INSERT x", 9, "x_excluded", b"3"),
        *_statement("INSERT b, é", 2, "b", b"4"),
        (MAP, map_body(1, "a")),
        (WRITE, rows_body(1, b"5")),
    ]
    log.add([compressed([BEGIN, *events, XID])] if payload else [BEGIN, *events, XID])
    log.add([BEGIN, (MAP, map_body(1, "a")), (WRITE, rows_body(1, b"6")), XID])
    return log


_EXPECTED = ["INSERT a", "INSERT a", "INSERT b, é", "INSERT b, é", None]


@pytest.mark.parametrize("payload", [False, True])
def test_each_row_has_its_own_statement(payload: bool) -> None:
    stream = Stream(queries=True).feed([b"".join(_log(payload=payload).dump(GtidSet()))])
    end, _ = stream.cut(START)
    slices = stream.slices(START, end)
    assert _statements(slices) == _EXPECTED
    assert [len(row[3]) > 0 for row in rows_of(slices)] == [True] * 5
    assert not any(b"INSERT x" in slice_.payload for slice_ in slices)


def test_statements_are_not_kept_unless_asked_for() -> None:
    stream = Stream().feed(_log().dump(GtidSet()))
    end, _ = stream.cut(START)
    (slice_,) = stream.slices(START, end)
    assert slice_.texts() == []
    assert b"INSERT" not in slice_.payload


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_statement_is_in_force_across_batches_and_slices(most: int) -> None:
    log = _log()
    stream = Stream(queries=True).feed(log.dump(GtidSet()))
    statements: list[str | None] = []
    position = START
    for _ in range(10):
        end, _ = stream.cut(position, max_rows=most)
        if end == position:
            break
        statements += _statements(stream.slices(position, end, 2))
        if end.open_gtid:  # a process that begins there has the same texts
            again = Stream(end, queries=True).feed(log.dump(end.delivered))
            assert _statements(again.slices(end, again.cut(end)[0])) == _EXPECTED[len(statements) :]
        position = end
    assert statements == _EXPECTED


def test_a_statement_that_a_block_separates_from_its_rows_is_kept() -> None:
    stream = Stream(queries=True)
    for chunk in _log().dump(GtidSet()):
        stream.feed([chunk])
    end, _ = stream.cut(START)
    assert _statements(stream.slices(START, end)) == _EXPECTED


def test_a_batch_ends_right_behind_a_statement_that_asks_for_it() -> None:
    log = Binlog()
    log.add([BEGIN, (MAP, map_body(1, "a")), (WRITE, rows_body(1, b"1")), XID])
    log.add([(kinds.QUERY, query_body("TRUNCATE TABLE a"))])
    log.add([(kinds.QUERY, query_body("TRUNCATE TABLE x_excluded"))])
    log.add([BEGIN, (MAP, map_body(1, "a")), (WRITE, rows_body(1, b"2")), XID])
    log.add([(kinds.QUERY, query_body("TRUNCATE TABLE a"))])
    stream = Stream(ends_batch=lambda change: any(table.table == "a" for table in change.tables or ()))
    stream.feed(log.dump(GtidSet()))
    ends = []
    position = START
    for _ in range(4):
        position, _ = stream.cut(position)
        ends.append(str(position.delivered).rpartition(":")[2])
    assert ends == ["1-2", "1-5", "1-5", "1-5"]
    plain = Stream().feed(log.dump(GtidSet()))
    assert str(plain.cut(START)[0].delivered).endswith(":1-5")


def test_a_change_of_tables_says_where_it_stands() -> None:
    log = Binlog()
    logged = log.add([(kinds.QUERY, query_body("ALTER TABLE a ADD COLUMN b INT", thread=5))])
    stream = Stream().feed(log.dump(GtidSet()))
    _, cut = stream.cut(START)
    (change,) = stream.buffer.contents(cut.start, cut.end).changes
    assert change.origin is not None
    assert change.origin.gtid == f"{logged.source[0]}:1"
    assert change.origin.thread is None
    assert logged.begin < change.origin.pos < log.pos
    assert change.session.database == "shop"
    assert stream.buffer.changes_behind(cut.start) == (change,)
    assert stream.buffer.changes_behind(cut.end) == ()


def test_a_server_that_logs_no_statements_is_warned_of() -> None:
    (finding,) = query_findings({"binlog_rows_query_log_events": "OFF"})
    assert finding.severity == "warning"
    assert "include.query" in finding.problem
    assert query_findings({"binlog_rows_query_log_events": "ON"}) == []
