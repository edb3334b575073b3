"""Tables that are dropped or renamed while their snapshot reads them: what the log says of it."""

from __future__ import annotations

import pytest

from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDER_LINES, ORDERS
from tests.e2e.test_restart import rows_sent

pytestmark = pytest.mark.servers

ROWS = 40_000
SETTINGS = {"incremental.snapshot.chunk.size": "500", "snapshot.max.threads": "2"}


def test_a_table_that_goes_during_its_snapshot_is_one_warning(play: CapturedDatabase) -> None:
    orders, lines = play.create(ORDERS, ROWS), play.create(ORDER_LINES, ROWS)
    with play.job(SETTINGS) as job, play.notices() as notices, play.connect() as connection:
        job.wait_until_streaming()
        play.execute_by_row("gone", [orders, lines])
        job.wait_until("rows were sent", lambda: rows_sent(play) > 0, every=0.01)
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {orders.sql}")
            cursor.execute(f"RENAME TABLE {lines.sql} TO {lines.sql[:-1]}_old`")
        job.wait_until("the snapshot ends", lambda: notices.completed("gone"))
        log = job.log_tail(2_000).splitlines()
        job.stop()

    for table in (orders, lines):
        warnings = [line for line in log if "WARNING" in line and f"{table}" in line]
        assert len([line for line in warnings if "failed, attempt" in line or "was not read" in line]) <= 1, warnings
    assert not [line for line in log if "moved rows into it" in line]
    assert not [line for line in log if "Traceback" in line]
