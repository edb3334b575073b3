"""Tests of batches with a limit of rows."""

from __future__ import annotations

import pytest

from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol import wire_types as t
from incsnap.gtid import GtidSet
from tests.support.binlog_bytes import BEGIN, WRITE, XID, Binlog, rows_body
from tests.support.packets import table_map
from tests.support.stream_in_memory import START, Stream

#: An image of one INT that is not NULL: a null bitmap and four bytes. `rows_body` adds the null bitmap of the first
#: image.
_ROW = b"\x00\x01\x02\x03\x04"


def _events_of_batches(names: list[str], most: int) -> list[int]:
    """Return the number of events in each batch of at most `most` rows.

    The first transaction has events of 3, 1, 2 and 9 rows, and one that cannot be read. Two transactions of one row
    follow.
    """
    described = (kinds.TABLE_MAP, table_map(names, [t.LONG], b"", table_id=1))
    written = [(WRITE, rows_body(1, (_ROW * rows)[1:])) for rows in (3, 1, 2, 9)]
    log = Binlog()
    log.add([BEGIN, described, *written, (WRITE, rows_body(1, b"")), XID])
    for _ in range(2):
        log.add([BEGIN, described, (WRITE, rows_body(1, _ROW[1:])), XID])
    stream = Stream()
    for packets in log.dump(GtidSet()):
        stream.feed([packets])
    position, counts = START, list[int]()
    while True:
        end, cut = stream.cut(position, max_rows=most)
        if end == position:
            return counts
        counts.append(stream.buffer.contents(cut.start, cut.end).events)
        stream.buffer.forget(position)
        position = end


@pytest.mark.parametrize("names", [["id"], []], ids=["FULL", "MINIMAL"])
@pytest.mark.parametrize(
    ("most", "events"),
    [
        (1, [1, 1, 1, 1, 1, 1, 1]),
        (4, [2, 1, 1, 3]),
        # Whole transactions if they fit. The first has 16: 15 rows, and one for the event that cannot be read.
        (15, [4, 3]),
        (16, [5, 2]),
        (17, [6, 1]),
        (1000, [7]),
    ],
)
def test_a_batch_ends_behind_the_last_event_that_has_room(names: list[str], most: int, events: list[int]) -> None:
    assert _events_of_batches(names, most) == events
