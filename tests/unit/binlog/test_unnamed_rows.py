"""Tests of rows whose table maps have no column names (`binlog_row_metadata=MINIMAL`), and of batches with such
rows."""

from __future__ import annotations

from incsnap.binlog.buffer_position import UnnamedRows
from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol import wire_types as t
from incsnap.binlog.slicing import cut_slices
from incsnap.gtid import GtidSet
from incsnap.tables import TableId
from tests.support.binlog_bytes import BEGIN, WRITE, XID, Binlog, query_body, rows_body
from tests.support.packets import table_map
from tests.support.stream_in_memory import START, Stream, rows_of

ORDERS = TableId("shop", "orders")
_MINIMAL = (kinds.TABLE_MAP, table_map([], [t.LONG], b"", table_id=1))
_FULL = (kinds.TABLE_MAP, table_map(["id"], [t.LONG], b"", table_id=1))
_ALTER = (kinds.QUERY, query_body("ALTER TABLE orders ADD INDEX (id)"))


def _rows(table_map: tuple[int, bytes], *contents: bytes) -> list[tuple[int, bytes]]:
    return [BEGIN, table_map, *((WRITE, rows_body(1, content)) for content in contents), XID]


def _ends(log: Binlog) -> list[str]:
    """Return the end of each batch as the number of its last transaction."""
    stream, position, ends = Stream().feed(log.dump(GtidSet())), START, list[str]()
    while (following := stream.cut(position)[0]) != position:
        position = following
        ends.append(str(position.delivered).rpartition("-")[2])
    return ends


def test_a_batch_ends_behind_each_statement_once_there_were_rows_without_names() -> None:
    log = Binlog()
    for events in (_rows(_FULL, b"1"), [_ALTER], _rows(_MINIMAL, b"2"), [_ALTER], _rows(_FULL, b"3")):
        log.add(events)
    assert _ends(log) == ["2", "4", "5"]


def test_with_names_alone_statements_end_no_batch() -> None:
    log = Binlog()
    for events in (_rows(_FULL, b"1"), [_ALTER], _rows(_FULL, b"2")):
        log.add(events)
    assert _ends(log) == ["3"]


def test_rows_without_names_stand_among_the_statements() -> None:
    log = Binlog()
    log.add(_rows(_FULL, b"1"))
    made = log.add(
        [BEGIN, (kinds.QUERY, query_body("CREATE TABLE orders (id INT) START TRANSACTION")), *_rows(_MINIMAL, b"2")[1:]]
    )
    log.add(_rows(_MINIMAL, b"3"))
    log.add([_ALTER])
    stream = Stream().feed(log.dump(GtidSet()))
    _, cut = stream.cut(START)
    contents = stream.buffer.contents(cut.start, cut.end)
    assert [change.sql.split()[0] for change in contents.changes] == ["CREATE", "ALTER"]
    [unnamed] = contents.unnamed
    assert unnamed == UnnamedRows(ORDERS, unnamed.place, 1, 1)
    file, _, pos = unnamed.place.partition(":")
    assert (file, made.begin < int(pos) < log.pos) == (made.file, True)
    assert contents.tables == {ORDERS}


def test_the_events_of_one_table_are_those_with_names_and_those_without() -> None:
    log = Binlog()
    for events in (_rows(_FULL, b"1"), _rows(_MINIMAL, b"2"), _rows(_FULL, b"3")):
        log.add(events)
    stream = Stream().feed(log.dump(GtidSet()))
    end, cut = stream.cut(START)
    [only] = cut_slices(stream.buffer.stretches(cut.start, cut.end), stream.ids, 1, ORDERS)
    assert rows_of([only]) == rows_of(stream.slices(START, end))
    assert len(rows_of([only])) == 3
    assert cut_slices(stream.buffer.stretches(cut.start, cut.end), stream.ids, 1, TableId("shop", "none")) == []
