"""A job that is down with windows in flight, while every row of their table is written again."""

from __future__ import annotations

import pytest

from incsnap.checkpoint.status import read_status
from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDERS
from signals import send
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers

ROWS = 30_000
SETTINGS = {"incremental.snapshot.chunk.size": "1000", "spark.master": "local[2,4]"}
#: A condition that is true for every row, but slow: a chunk takes a second. So windows are in flight for long enough,
#: also for a slow test.
SLOWLY = "(id % 20 <> 0 OR SLEEP(0.01) = 0)"


@pytest.mark.parametrize(
    "clean", [pytest.param(True, id="stopped", marks=pytest.mark.long), pytest.param(False, id="killed")]
)
def test_a_backlog_on_a_table_under_snapshot_ends_without_going_back_in_time(
    play: CapturedDatabase, clean: bool
) -> None:
    orders = play.create(ORDERS, ROWS)

    def in_flight() -> bool:
        status = read_status(str(play.checkpoint))
        return status is not None and status.windows_in_flight > 1 and status.rows_read > 0

    with play.notices() as notices:
        with play.job(SETTINGS) as job:
            job.wait_until_streaming()
            asked = send.snapshot_data([str(orders)], [(str(orders), SLOWLY)])
            play.signal_by_row("one", "execute-snapshot", asked)
            job.wait_until("windows were in flight", in_flight, every=0.005)
            if clean:
                job.stop()
            else:
                job.kill()
            wait_until(lambda: not job.remains())
        assert in_flight(), "the table was complete before the stop: nothing is put to the test"
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT MAX(id) FROM {orders.sql}")
            ((last,),) = cursor.fetchall()
            for _ in range(2):
                for begin in range(0, last, 1000):
                    cursor.execute(
                        f"UPDATE {orders.sql} SET version = version + 1 WHERE id > {begin} AND id <= {begin + 1000}"
                    )
            cursor.execute(f"DELETE FROM {orders.sql} WHERE id % 17 = 0")
        with play.job(SETTINGS) as job:
            job.wait_until("the snapshot was complete", lambda: notices.completed("one"))
            play.drain(job)
            job.stop()
    (verdict,) = play.verdicts()
    assert verdict.faults(snapshots=1) == []
    assert verdict.replay.counts["u"] == 2 * ROWS
