"""The names of XA transactions behind a place, from a binlog made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

from incsnap.binlog import prepared_search
from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol.dump_connection import LogSource
from incsnap.gtid import GtidSet
from tests.support import binlog_bytes as made
from tests.support.binlog_bytes import BEGIN, WRITE, XID, Binlog, xa, xa_prepare

A, B = "X'61',X'',1", "X'62',X'',1"
_SID = str(made.SID)
_ROW = [(kinds.TABLE_MAP, made.map_body(80, "t")), (WRITE, made.rows_body(80, b"row"))]
_PREPARE_A = [xa("START"), *_ROW, xa("END"), xa_prepare()]
_PREPARE_B = [xa("START", "62"), *_ROW, xa("END", "62"), xa_prepare("62")]
_ONE_PHASE = [xa("START"), *_ROW, xa("END"), xa_prepare(one_phase=True)]
_OTHER = [BEGIN, *_ROW, XID]


@pytest.mark.parametrize(
    ("transactions", "passed", "prepared", "committed"),
    [
        ([], 0, set(), set()),
        ([_PREPARE_A], 1, set(), set()),
        ([_OTHER, _PREPARE_A, _PREPARE_B], 1, {A, B}, set()),
        ([_OTHER, _PREPARE_A, _PREPARE_B], 2, {B}, set()),
        ([_PREPARE_A, [xa("COMMIT")]], 0, {A}, set()),
        ([_PREPARE_A, _OTHER, [xa("COMMIT")]], 1, set(), {A}),
        ([_PREPARE_A, [xa("ROLLBACK")]], 1, set(), set()),
        ([_OTHER, _ONE_PHASE], 1, set(), set()),
        ([_PREPARE_A, [xa("COMMIT")], _PREPARE_A], 1, {A}, {A}),
        ([_PREPARE_A, [xa("ROLLBACK")], _PREPARE_A, [xa("COMMIT")]], 1, {A}, set()),
    ],
    ids=range(10),
)
def test_the_names_behind_a_place_are_those_that_begin_or_end_there(
    transactions: Sequence[Sequence[tuple[int, bytes]]], passed: int, prepared: set[str], committed: set[str]
) -> None:
    log = Binlog()
    for events in transactions:
        log.add(events)
    delivered, executed = (f"{_SID}:1-{many}" if many else "" for many in (passed, len(transactions)))
    packets = log.dump(GtidSet.parse(delivered))
    connection, stream = MagicMock(), MagicMock()
    cursor = connection.cursor.return_value.__enter__.return_value
    cursor.fetchone.return_value = (executed,)
    cursor.fetchall.return_value = [(log.file, log.pos)]
    stream.read.side_effect = lambda: next(packets)

    def opened(*_: Any) -> tuple[Any, LogSource]:
        return stream, LogSource("", checksum=True)

    search = PreparedSearch(lambda: connection, 1, lambda _: False, PreparedTransactions())
    with patch.object(prepared_search, "open_stream", opened):
        assert search.behind(GtidSet.parse(delivered)) == (prepared, committed)
