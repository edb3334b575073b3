"""The lag of the stream as a load of snapshots: how the planner measures it, and when."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from incsnap.binlog.buffer_position import Advance
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner.server_port import ServerPort
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.context import Request, SnapshotContext
from incsnap.snapshot.load import MeasuredLoad
from incsnap.snapshot.throttle import STREAM_LAG, Bound, Throttle
from incsnap.tables import TableId
from tests.support.job_settings import loaded_with

_READING = SnapshotContext((Request("s", DataCollection(TableId("shop", "orders"))),))
_SIGNALLED = Throttle((Bound(STREAM_LAG, 900, "spare"),))


def _loads(snapshot: SnapshotContext, last_ts_us: int, behind_seconds: float, limit: int = 500) -> Any:
    """Return the loads of a batch whose last transaction was committed at `last_ts_us`."""
    settings = loaded_with(incsnap__snapshot__throttle__stream__lag__ms=str(limit)).settings
    nobody: Any = None
    end = StreamPosition(GtidSet(), "binlog.000001", 100)
    advance = Advance(frozenset(), (), 0, 0, last_ts_us, end=end, signals=())
    with closing(ServerPort(settings, nobody, nobody)) as port:
        return port.loads(snapshot, advance, behind_seconds)


@pytest.mark.parametrize(
    ("last_ts_us", "behind_seconds", "lag_ms"),
    [
        (1, 1.2344, 1234),
        # The server's clock is ahead of this one.
        (1, -3.0, 0),
        # A batch without a transaction: `behind_seconds` counts from 1970, and the stream has read all there is.
        (0, 1.8e9, 0),
    ],
)
def test_the_lag_is_the_age_of_the_last_transaction(last_ts_us: int, behind_seconds: float, lag_ms: int) -> None:
    assert _loads(_READING, last_ts_us, behind_seconds) == (MeasuredLoad("stream-lag-ms", lag_ms),)


def test_the_lag_is_measured_where_a_limit_could_hold_a_snapshot_back() -> None:
    assert _loads(_READING, 1, 9.0, limit=0) == ()
    assert _loads(SnapshotContext(_READING.queue, throttle=_SIGNALLED), 1, 9.0, limit=0) == (
        MeasuredLoad(STREAM_LAG, 9_000),
    )
    assert _loads(SnapshotContext(), 1, 9.0) == ()
    assert _loads(SnapshotContext(_READING.queue, paused=True), 1, 9.0) == ()
